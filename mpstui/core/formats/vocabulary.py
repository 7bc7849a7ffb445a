"""The words by which programs name things, in the languages met in logs. One place to teach the reader a word."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TRAIN_WORDS = _words(
    """
    train training trained trn tr entrainement entraînement entrenamiento treino allenamento
    训练 訓練 学習 学习 학습 훈련
    обучение обучения
    """
)
"""Say that a value is of training."""
EVAL_WORDS = _words(
    """
    val valid validation validating validate vloss eval evaluation evaluating evaluate test testing tst dev
    holdout heldout vl 验证 驗證 検証 测试 測試 评估 評価 テスト 검증 평가
    테스트 валидация валидации тест prueba validación validação
    teste validierung validierungsverlust testverlust
    """
)
"""Say that a value is of an evaluation."""
EPOCH_WORDS = _words(
    """
    epoch epoche epoca época époque epochs ep epo epch epok epoka
    エポック 轮 轮次 轮数 輪 輪次 回合 周期 에폭 에포크 에폭수 эпоха эпохи
    épocas epocas époques epoque epoques epochen dönem
    """
)
"""Name an epoch."""
EPOCH_PLURALS = _words(
    """
    epochs épocas epocas époques epoques epochen 轮数
    """
)
"""Name how many epochs are planned."""
STEP_WORDS = _words(
    """
    step steps iter iters iteration iterations it itr update updates timestep timesteps num_updates шаг ステップ 步
    次数 步数 스텝 단계 étape etape paso passo schritt イテレーション 迭代
    """
)
"""Name an optimizer step."""
BATCH_WORDS = _words(
    """
    batch minibatch batches minibatches バッチ 批次 batchs 배치 батч lote
    """
)
"""Name a batch of an epoch."""
BESIDE_A_COUNTER = _words(
    """
    global current optimization optimizer training this gradient model at in for the on now starting start begin
    learning completed whole cur curr 迭代 更新
    """
)
"""Say nothing about what a counter counts."""
PLAN_WORDS = _words(
    """
    num number total max n planned of nb count 総 总 合計 totales
    """
)
"""In front of a counter: how many are planned."""
LOSS_WORDS = _words(
    """
    loss losses lss 损失 损失值 損失 損失値 误差 誤差 ロス 손실 손실값 로스 trainingsverlust
    perte pertes pérdida perdida perda verlust verlies perdita strata förlust kayıp kayip cost costs лосс потери потеря
    ошибка mất-mát trl
    """
)
"""Name a loss."""
AVERAGE_WORDS = _words(
    """
    avg average averaged avr mean running smooth smoothed ema moving epoch moyenne 平均 평균 средний средняя
    """
)
"""Say that a value is an average."""
WHOLE_WORDS = _words(
    """
    total overall sum full final
    """
)
"""Say that a loss is the whole one."""
FILLER_WORDS = _words(
    """
    step batch iter iteration current cur curr this now minibatch mini per sample token raw 当前 现在 value 값 値 值
    main rank is was the so far for on at of in 集 的 为 為 是 每 本轮 该 上的 모델
    """
)
"""Say nothing about which loss it is."""
CRITERION_WORDS = _words(
    """
    lm ce crossentropy cross entropy nll mse l1 l2 ntp mlm ar objective model g2p ctc diffusion denoising sft
    """
)
"""Name a criterion that is the training loss where there is no plainer one."""
PIXEL_WORDS = _words(
    """
    pix pixel percep perceptual fea style gan g d real fake total freq edge ssim charbonnier
    """
)
"""Behind an ``l_``: the losses of image restoration (``l_pix``, ``l_g_percep``, ``l_d_real``)."""
NEVER_A_LOSS = _words(
    """
    scale weight weights fn func function type name smoothing best min minimum lowest max previous prev last
    delta change ratio lambda coef coefficient factor scaler scaling improved target threshold patience explored
    best_loss old diff initial gap decrease reduction std var norm grad perplexity time times second seconds sec
    speed memory mem gpu elapsed duration 最小 最佳 最低 ベスト 最良
    """
)
"""A name with one of these is no training loss, whatever else it says."""
MEASURE_WORDS = _words(
    """
    acc accuracy acc1 acc5 top1 top5 ppl perplexity bpb bpc f1 precision recall auc auroc iou miou
    dice psnr ssim mae mse rmse bleu wer cer 准确率 精度 正解率 정확도 точность
    """
)
"""Name a measure of a model that is taken for nothing else where no sign joins it to a number."""
LABEL_WORDS = _words(
    """
    set results result metrics
    """
)
"""Stand beside the word that says whose values a line holds: "Test set", "Validation results"."""
RATE_WORDS = _words(
    """
    lr 学习率 学習率 학습률 lrate lernrate leersnelheid inlärningshastighet
    """
)
"""Are the learning rate."""
RATE_PAIRS = frozenset(
    {
        ("learning", "rate"),
        ("скорость", "обучения"),
        ("taux", "apprentissage"),
        ("tasa", "aprendizaje"),
        ("taxa", "aprendizado"),
        ("taxa", "aprendizagem"),
        ("tasso", "apprendimento"),
        ("öğrenme", "oranı"),
        ("öğrenme", "hızı"),
        ("współczynnik", "uczenia"),
    }
)
"""Are the learning rate together, with at most a "de" between them."""
NEVER_A_RATE = _words(
    """
    mult mul multiplier scale decay factor min max final warmup scheduler schedule end scaling patience gamma lrm
    ratio reduction range step steps size drop policy
    """
)
"""Make something else of a learning rate."""
