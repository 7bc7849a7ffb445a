"""The words that programs use, in the languages met in logs: the one place to teach the reader a new word."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the whitespace-separated words of a text."""
    return frozenset(text.split())


TRAIN_WORDS = word_set(
    """
    train training trained trn tr entrainement entraînement entrenamiento treino allenamento
    训练 訓練 学習 学习 학습 훈련
    обучение обучения
    """
)
"""Mark a value as one of training."""
EVAL_WORDS = word_set(
    """
    val valid vali validation validating validate eval evaluation evaluating evaluate test testing tst dev
    holdout heldout vl cv 验证 驗證 検証 测试 測試 评估 評価 テスト 검증 평가
    테스트 валидация валидации тест prueba validación validação
    teste validierung validierungsverlust testverlust
    """
)
"""Mark a value as one of an evaluation."""
EPOCH_WORDS = word_set(
    """
    epoch epoche epoca época époque epochs epoches ep epo epch epok epoka
    エポック 轮 轮次 轮数 輪 輪次 回合 周期 에폭 에포크 에폭수 эпоха эпохи эпох
    épocas epocas époques epoque epoques epochen dönem
    """
)
"""Name an epoch."""
EPOCH_PLURALS = word_set("epochs epoches épocas epocas époques epoques epochen эпох 轮数")
"""Name the number of planned epochs."""
ROUND_WORDS = word_set("round")
"""Name an epoch made of many trainings (federated learning), if the line has no other counter."""
STEP_WORDS = word_set(
    """
    step steps iter iters iteration iterations it itr itrs update updates timestep timesteps numsteps num_updates шаг
    ステップ 步 次数 步数 스텝 단계 étape etape paso passo schritt イテレーション 迭代 iteración iteraciones itération
    itérations шагов шаги passos pasos schritte étapes nupdates iterazione iterazioni iteração iterações iterationen
    итерация итерации
    """
)
"""Name an optimizer step."""
GENERATION_WORDS = word_set("generation generación génération geração поколение 世代")
"""Name a step of an evolutionary algorithm, but only beside a measure: language models make generations too."""
BATCH_WORDS = word_set("batch minibatch batches minibatches バッチ 批次 batchs 배치 батч lote")
"""Name a batch of an epoch."""
BESIDE_A_COUNTER = word_set(
    """
    global current optimization optimizer training this gradient model at in for the on now starting start begin
    learning completed whole cur curr mini outer em progress env environment policy learner fine tune finetune tuning ft
    l bfgs lbfgs adam sgd adamw 迭代 更新
    """
)
"""Beside a counter, these do not change what it counts."""
NOT_THE_EPOCH = word_set(
    """
    best last max min per every warm warmup start end stop save saved eval log num total patience decay since early
    first final print display report lr milestone down drop freeze unfreeze resume resumed ckpt checkpoint time seconds
    speed previous next swa ema burn each after before until til till loss learning rate no ramp cooldown from to if
    than spent local
    """
)
"""In front of "epoch": another one than the current epoch of training."""
NOT_THE_STEP = NOT_THE_EPOCH | word_set(
    "accumulation accum grad micro inner diffusion denoising sampling sampler search"
)
"""In front of "step": another step than one of the optimizer."""
NUMBERED_WORDS = word_set(
    "fold client class head seed gpu rank worker layer trial part member task shot level group correct right"
)
"""In front of a rising number: an index or a quantity, not the progress of the training."""
STATISTIC_WORDS = word_set("mean avg average median std stddev min max var p5 p25 p50 p75 p95 p99 q1 q3")
"""Name a statistic of many values, at the head of a column."""
CENTRES = word_set("mean avg average median")
"""The statistics that represent all the values."""
HEADING_WORDS = word_set(
    """
    result results summary total avg average mean final best metrics metric stats status log progress gpu cpu mps cuda
    rank overall all end done note event report score scores update state ppo sac dqn td3 a2c rl sft dpo gan model
    """
)
"""In capitals in front of values: a heading for those of the whole run."""
SUBJECT_WORDS = word_set(
    "symbol ticker class label category name dataset domain task split phase mode set subset stock"
)
"""Name a column that says what the values of a row belong to."""
PART_WORDS = word_set("class cls label category head block channel keypoint joint expert")
"""In front of a number and a measure: the measure is of a part (``class 3 accuracy``), not of the run."""
PLAN_WORDS = word_set(
    """
    num number total max n planned of nb count 総 总 總 合計 총 전체 totales totais totali всего
    макс количество число anzahl nombre número numero
    """
)
"""In front of a counter: the planned total."""
LOSS_WORDS = word_set(
    """
    loss losses lss 损失 损失值 損失 損失値 误差 誤差 ロス 손실 손실값 로스 trainingsverlust
    perte pertes pérdida perdida perda verlust verlies perdita strata förlust kayıp kayip cost costs лосс потери потеря
    ошибка mất-mát trl
    """
)
"""Name a loss."""
AVERAGE_WORDS = word_set(
    """
    avg average averaged avr mean running smooth smoothed ema moving epoch moyenne 平均 평균 средний средняя
    """
)
"""Mark a value as an average."""
WHOLE_WORDS = word_set("total overall all sum full final 总 總")
"""Mark a loss as the total."""
FILLER_WORDS = word_set(
    """
    step batch iter iteration current cur curr this now minibatch mini per sample token tok raw 当前 现在 value 값 値 值
    main rank is was the so far for on at of in 集 的 为 為 是 每 本轮 该 上的 모델
    """
)
"""Do not distinguish one loss from another."""
CRITERION_WORDS = word_set(
    """
    lm ce crossentropy cross entropy nll mse l1 l2 ntp mlm ar g2p ctc diffusion denoising sft task
    """
)
"""Name a criterion that is the training loss if there is no plainer one."""
PIXEL_WORDS = word_set("pix pixel percep perceptual fea style gan g d real fake total freq edge ssim charbonnier")
"""After ``l_``: the losses of image restoration (``l_pix``, ``l_g_percep``, ``l_d_real``)."""
NEVER_A_LOSS = word_set(
    """
    λ scale weight weights fn func function type name smoothing best min minimum lowest max previous prev last
    delta change ratio lambda coef coefs coeff coeffs coefficient factor scaler scaling improved target
    threshold patience explored best_loss old diff initial gap decrease reduction std var norm grad perplexity time
    times second seconds sec speed memory mem gpu elapsed duration num wei margin every interval freq flag
    最小 最佳 最低 ベスト 最良
    """
)
"""A name with one of these is never a training loss, whatever its other words."""
MEASURE_WORDS = word_set(
    """
    acc accuracy acc1 acc5 top1 top5 ppl perp perplexity bpb bpc f1 precision recall auc auroc iou miou
    dice psnr ssim mae mape mse rmse bleu wer cer map50 ap50 prec rec fid wape wmape nrmse
    准确率 精度 正解率 정확도 точность
    """
)
"""Name a measure unambiguously, even without a sign between it and a number."""
NO_MEASURE = NEVER_A_LOSS - word_set("perplexity norm grad old diff std var gap last") | word_set(
    "alpha gamma thresh thr annealing scheduler schedule"
)
_ERRORS_AND_SCORES = """
    accu accuracies error err errs rew reward rewards score scores kl elbo entropy mcc kappa rouge meteor ndcg mrr r2
    medae specificity sensitivity correlation lpips chrf eer dcf gnorm fnmr fmr far frr cosine similarity pearson
    spearman kendall brier fpr tpr fnr tnr ppv npv srcc plcc krcc f05 f2 return returns fb1 nae mase smape hd95
    jaccard auprc epe pesq stoi sdr nsdr rse rae rms corr sisdr sisnr chamfer nll likelihood cider bertscore mpjpe
    mpjve mr pck oks logp logprob loglik rmsle msle hmean gauc dsc
    crps bpd nmi ari qwk mcd fitness roc accy fscore f1score fmeasure
    ece uar aupr pcc nme hter apcer bpcer acer fvd snr msssim fwiou miu mota idf1 hota silhouette silog aee mpve rmsse
"""
MEASURES = MEASURE_WORDS | LOSS_WORDS | word_set(_ERRORS_AND_SCORES)
"""Name a measure if a sign stands between it and a number."""
RANKED = word_set("map ap top hit hits")
"""Measures that may have a number after them: ``mAP@50``, ``top 5``."""
NUMBERED = word_set("top hit hits")
"""Measures only with a number after them: ``hits: 12`` may be of a cache."""
LABEL_WORDS = word_set("set results result metrics")
"""Words beside "test" or "validation" in a label: "Test set", "Validation results"."""
RATE_WORDS = word_set("lr 学习率 学習率 학습률 lrate lernrate leersnelheid inlärningshastighet")
"""Name the learning rate."""
RATE_PAIRS = frozenset(
    {
        ("learning", "rate"),
        ("learn", "rate"),
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
"""Name the learning rate as a pair, with at most a "de" between them."""
NEVER_A_RATE = word_set(
    """
    mult mul multiplier scale decay factor min max final warmup scheduler schedule end scaling patience gamma lrm
    ratio reduction range step steps size drop policy power ending by itr iter iters every interval freq
    """
)
"""In a name with a learning rate: it is something else (``lr_decay``)."""
NEVER_A_METRIC = word_set(
    "δ eta remaining left checkpoint checkpointer seed version pid port range shape size sizes dim dims rank ranks bs"
    " ts"
)
"""A name with one of these is of something other than a metric."""
COUNTED = (
    STEP_WORDS
    | EPOCH_WORDS
    | BATCH_WORDS
    | word_set(
        "fold folds trial client clients round rounds seeds"
        " stage phase episode episodes tokens samples examples images features params parameters 参数"
        " tp fp fn tn"
    )
)
"""At the end of a name: the value is their number."""
NO_NAME = word_set(
    """
    t in at of the and to from by is for with using min max mins sec secs hours days v num n no on as am pm device gpu
    class cuda best took after before over within under during until since every per inner outer
    """
)
"""A name of these words alone is a piece of a sentence."""
_TIMES = "time times timing timer elapse elapsed elasped duration runtime took data tiempo tempo temps zeit dauer durée"
DURATIONS = word_set(f"{_TIMES} seconds secs minutes walltime wallclock 耗时 用时 時間 시간")
"""Name a time."""
MACHINE_WORDS = word_set(
    """
    mem memory vram ram rss swap speed throughput ips wps ups fps tps sps qps flops tflops mfu gb mb gib mib util
    utilization reserved allocated memallocated 显存 内存 速度
    """
)
"""Name a reading of the machine."""
SETTING_WORDS = (
    word_set("lr momentum decay dropout warmup optimizer scheduler workers hidden layers heads") | RATE_WORDS
)
"""Name a setting."""
EPISODES = word_set("episode episodes")
"""Beside the number of an episode, values are of training."""
BEST_WORDS = word_set("best highest 最佳 最好 最优 最高 ベスト")
"""Mark a value as the best so far."""
EARLIER_WORDS = word_set("prev previous")
"""Mark a value as the previous one."""
PLAIN_WORDS = (
    MEASURES
    | TRAIN_WORDS
    | EVAL_WORDS
    | AVERAGE_WORDS
    | WHOLE_WORDS
    | FILLER_WORDS
    | CRITERION_WORDS
    | LABEL_WORDS
    | BEST_WORDS
    | word_set(
        "macro micro weighted policy value actor critic generator discriminator gen disc bce dice kl iou rate at"
        " exact match em success win log"
    )
)
"""A name of these words alone says nothing but which measure it is."""
SPELLINGS = {
    **dict.fromkeys(("accuracy", "accuracies", "accu", "accy"), "acc"),
    **dict.fromkeys(("准确率", "精度", "正解率", "정확도", "точность"), "acc"),
    **dict.fromkeys(("perplexity", "perp"), "ppl"),
    **dict.fromkeys(("average", "averaged", "avr", "mean"), "avg"),
    **dict.fromkeys(LOSS_WORDS, "loss"),
}
"""Synonyms, and the spelling used to compare names."""
SPELT_OUT = (
    ("root mean squared error", "rmse"),
    ("mean squared error", "mse"),
    ("mean absolute error", "mae"),
    ("mean average precision", "map"),
    ("mean reciprocal rank", "mrr"),
    ("mean rank", "mr"),
    ("mean iou", "miou"),
    *((f"{measure} score", measure) for measure in ("accuracy", "f1", "dice", "bleu", "auc")),
    ("dice coefficient", "dice"),
    ("roc auc", "auroc"),
    ("gradient norm", "grad norm"),
    ("gnorm", "grad norm"),
    ("reconstruction loss", "recon loss"),
)
"""Synonyms of several words, in the order in which they are looked for."""
TEST_WORDS = word_set("test testing tst 测试 測試 テスト 테스트 тест prueba teste testverlust")
"""Those of `EVAL_WORDS` that mean a test, not a validation."""
BESIDE_A_MEASURE = LABEL_WORDS | word_set("avg average averaged avr mean moyenne 平均 평균 средний средняя")
"""Beside a loss or an accuracy, these do not make it another quantity."""
