"""What a printed name means: counter, training loss, learning rate, rate, or some other metric.

The words by which programs name things come first, in the languages met in logs: the one place to teach the reader a
word. A name is split into lower-case words (camel case, ``_``, ``/``, ``.``, ``-`` and spaces separate them), the words
that only say *whose* value it is (train, avg, step ...) are set aside, and what remains must be known exactly. A word
that is not known means "some other metric": nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import lru_cache
from itertools import pairwise


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
    val valid vali validation validating validate vloss eval evaluation evaluating evaluate test testing tst dev
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
EPOCH_PLURALS = _words("epochs épocas epocas époques epoques epochen 轮数")
"""Name how many epochs are planned."""
STEP_WORDS = _words(
    """
    step steps iter iters iteration iterations it itr update updates timestep timesteps num_updates шаг ステップ 步
    次数 步数 스텝 단계 étape etape paso passo schritt イテレーション 迭代 iteración iteraciones itération itérations
    iterazione iterazioni iteração iterações iterationen итерация итерации
    """
)
"""Name an optimizer step."""
BATCH_WORDS = _words("batch minibatch batches minibatches バッチ 批次 batchs 배치 батч lote")
"""Name a batch of an epoch."""
BESIDE_A_COUNTER = _words(
    """
    global current optimization optimizer training this gradient model at in for the on now starting start begin
    learning completed whole cur curr mini 迭代 更新
    """
)
"""Say nothing about what a counter counts."""
PLAN_WORDS = _words("num number total max n planned of nb count 総 总 合計 totales")
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
WHOLE_WORDS = _words("total overall sum full final")
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
    lm ce crossentropy cross entropy nll mse l1 l2 ntp mlm ar model g2p ctc diffusion denoising sft
    """
)
"""Name a criterion that is the training loss where there is no plainer one."""
PIXEL_WORDS = _words("pix pixel percep perceptual fea style gan g d real fake total freq edge ssim charbonnier")
"""Behind an ``l_``: the losses of image restoration (``l_pix``, ``l_g_percep``, ``l_d_real``)."""
NEVER_A_LOSS = _words(
    """
    scale weight weights fn func function type name smoothing best min minimum lowest max previous prev last
    delta change ratio lambda coef coefs coeff coeffs coefficient factor scaler scaling improved target
    threshold patience explored best_loss old diff initial gap decrease reduction std var norm grad perplexity time
    times second seconds sec speed memory mem gpu elapsed duration 最小 最佳 最低 ベスト 最良
    """
)
"""A name with one of these is no training loss, whatever else it says."""
MEASURE_WORDS = _words(
    """
    acc accuracy acc1 acc5 top1 top5 ppl perplexity bpb bpc f1 precision recall auc auroc iou miou
    dice psnr ssim mae mape mse rmse bleu wer cer map50 ap50 prec rec fid 准确率 精度 正解率 정확도 точность
    """
)
"""Name a measure of a model that is taken for nothing else where no sign joins it to a number."""
_NO_MEASURE = NEVER_A_LOSS - _words("perplexity norm grad old diff std var gap last") | _words("alpha gamma thresh thr")
_ERRORS_AND_SCORES = """
    accuracies error err reward rewards score scores kl elbo entropy mcc kappa rouge meteor ndcg mrr r2 medae
    specificity sensitivity correlation lpips chrf eer gnorm fnmr fmr far frr cosine similarity pearson spearman
    kendall brier srcc plcc krcc f05 f2
"""
_MEASURES = MEASURE_WORDS | LOSS_WORDS | _words(_ERRORS_AND_SCORES)
"""Name a measure where a sign joins it to a number."""
_RETRIEVAL = re.compile(r"(?:[Rr]ank|R)[-@][1-9]\d?|CMC[-@ ]?[1-9]\d?")
_DETECTION = re.compile(r"m?A[PR](?:\d\d)?[sml]?(?:@\d{1,4})?")
_RANKED = _words("map ap top hit hits")
_NUMBERED = _words("top hit hits")
"""Are no measures without their number: ``hits: 12`` are those of a cache."""
LABEL_WORDS = _words("set results result metrics")
"""Stand beside the word that says whose values a line holds: "Test set", "Validation results"."""
RATE_WORDS = _words("lr 学习率 学習率 학습률 lrate lernrate leersnelheid inlärningshastighet")
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


class Role(IntEnum):
    """What a value is."""

    EPOCH = auto()
    EPOCHS = auto()
    STEP = auto()
    STEPS = auto()
    BATCH = auto()
    BATCHES = auto()
    LOSS = auto()
    LEARNING_RATE = auto()
    THROUGHPUT = auto()
    OTHER = auto()


class NameScope(IntEnum):
    """Whose value it is, as far as the name says."""

    NONE = auto()
    TRAIN = auto()
    EVAL = auto()


PART = 5
"""From this rank on a loss is one of several parts, or a word of a sentence."""


@dataclass(frozen=True, slots=True)
class Name:
    """A classified name. ``rank`` orders rival training losses, the lowest is the one to chart."""

    role: Role
    scope: NameScope = NameScope.NONE
    rank: int = 0


_THROUGHPUT = re.compile(
    r"(?i)^(?:(?:train[_/ ]?)?"
    r"(?:tok|toks|tokens?|samples?|it|its|iters?|iterations?|updates?|steps?|env[_ ]steps?|img|imgs|images?|ex|"
    r"examples?|words?|frames?|batch(?:es)?|seqs?|sequences?)"
    r"(?:/s(?:ec)?|/second|[_ ]per[_ ]sec(?:ond)?|ps)(?:[_/ ].*)?|tps|wps|fps|throughput.*|ips|it/sec)$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPLIT = re.compile(r"[\s_/.\-:|()\[\]*#\"'`@%]+")
_FACTOR = re.compile(r" [*×] [\d.e+-]{1,16}\Z")
_SCRIPTS = re.compile(r"(?<=[\u2e80-\u9fff])(?=[A-Za-z])|(?<=[A-Za-z])(?=[\u2e80-\u9fff])")
_VOCABULARY = TRAIN_WORDS.union(
    *(EVAL_WORDS, EPOCH_WORDS, STEP_WORDS, BATCH_WORDS, PLAN_WORDS),
    *(LOSS_WORDS, AVERAGE_WORDS, FILLER_WORDS, NEVER_A_LOSS, RATE_WORDS),
)
# Chinese, Japanese and Korean put no space between words: the longest known words are cut out.
_UNSPACED = re.compile("|".join(sorted((w for w in _VOCABULARY if w[0] >= "\u2e80"), key=len, reverse=True)))
_DIGITS = re.compile(r"\d+$")
_VALUE_OF_GROUP = re.compile(r"(?i)loss(?:es)?(?:/value(?![a-z])| \(value\))")
"""The loss of the value function in a group of losses (``loss/value_avg``)."""
_PAST = re.compile(r"(?i)trained|sampled|seen|done\Z")
"""Behind a counter: ``num_steps_trained`` is no plan."""
_ORDINALS = ("i", "id", "idx", "index", "no", "number", "nr", "progress")
_GLUED_LOSS = re.compile(r"(?!f|stop)[^\W\d_]{1,12}(?=loss\Z)")
_MAX_NAME = 80


def words_of(text: str) -> list[str]:
    """Lower-case words of a name: ``train/CrossEntropyLoss`` gives train, cross, entropy, loss."""
    text = _CAMEL.sub(" ", text.replace("IoU", "iou").replace("mAP", "map")).lower()
    if not text.isascii():
        text = _UNSPACED.sub(r" \g<0> ", _SCRIPTS.sub(" ", text))
    parts: list[str] = []
    for word in filter(None, _SPLIT.split(text)):
        # ``closs`` and ``trainloss`` are two words each; ``vloss`` is known, a ``stoploss`` is none of a model.
        glued = _GLUED_LOSS.match(word) if word.endswith("loss") and word not in _VOCABULARY else None
        parts += [word] if glued is None else [glued.group(), "loss"]
    return parts


_NEVER_A_METRIC = _words(
    "eta remaining left checkpoint checkpointer seed version pid port shape size sizes dim dims rank ranks bs"
)
_COUNTED = (
    STEP_WORDS
    | EPOCH_WORDS
    | BATCH_WORDS
    | _words("fold folds trial stage phase episode episodes tokens samples examples images params parameters")
)
_NO_NAME = _words(
    """
    in at of the and to from by is for with using min max mins sec secs hours days v num n no on as am pm device gpu
    cuda best took after before over within under during until since every per
    """
)
_TIMES = "time times timer elapsed elasped duration runtime took data tiempo tempo temps zeit dauer durée"
_DURATIONS = _words(f"{_TIMES} 耗时 用时 時間 시간")
_SPELLINGS = {
    **dict.fromkeys(("accuracy", "accuracies", "准确率", "精度", "正解率", "정확도", "точность"), "acc"),
    **dict.fromkeys(("perplexity",), "ppl"),
    **dict.fromkeys(LOSS_WORDS, "loss"),
}
_TEST_WORDS = _words("test testing tst 测试 測試 テスト 테스트 тест prueba teste testverlust")
_BESIDE_A_MEASURE = LABEL_WORDS | _words("avg average averaged avr mean moyenne 平均 평균 средний средняя")


@lru_cache(maxsize=4096)
def is_measure(text: str) -> bool:
    """Whether a name is that of a measure of a model (``test_acc``), not of a setting (``acc_threshold``)."""
    words = [word for word in words_of(text) if word != "best"]
    ranked = bool(words) and words[0] in _RANKED and (len(words) > 1 or words[0] not in _NUMBERED)
    if _is_retrieval(text) or _DETECTION.fullmatch(text.rpartition(" ")[2]):
        return True
    if ranked and all(word.isdigit() for word in words[1:]):
        return True  # ``mAP@50``, ``top 5``; a ``feature_map`` and ``top_k`` are none
    return _NO_MEASURE.isdisjoint(words) and not _MEASURES.isdisjoint(words)


def _is_retrieval(text: str) -> bool:
    """Whether a name is a hit rate of retrieval (``Rank-5``), not the number of a process (``rank 5``)."""
    return _RETRIEVAL.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def is_duration(text: str) -> bool:
    """Whether a name is that of a time; of the batches of an evaluation nobody follows it."""
    return not _DURATIONS.isdisjoint(words_of(text))


@lru_cache(maxsize=4096)
def quantity(text: str) -> tuple[str, str]:
    """On what it was measured (``val``, ``test``, nothing for training), and what: alike for every spelling."""
    words = words_of(text)
    kind = "val" if scope_of(words) is NameScope.EVAL else ""
    own = [word for word in words if word not in TRAIN_WORDS and word not in EVAL_WORDS]
    if own and own[-1] in ("lr", "rate") and classify(text).role is Role.LEARNING_RATE:
        return kind, "lr"
    known = [_SPELLINGS.get(word, word) for word in own]
    bare = [word for word in known if word not in _BESIDE_A_MEASURE] if {"loss", "acc"} & set(known) else known
    return "test" if kind and not _TEST_WORDS.isdisjoint(words) else kind, " ".join(bare) or text.lower()


@lru_cache(maxsize=4096)
def is_never_a_metric(text: str) -> bool:
    """Whether a name is that of something that a program also prints: the time that is left, a seed, a version."""
    words = words_of(text)
    counts = bool(words) and words[-1] in _COUNTED and not is_measure(text)
    unknown = not _NEVER_A_METRIC.isdisjoint(words) and not _is_retrieval(text)
    own = [word for word in words if word not in TRAIN_WORDS and word not in EVAL_WORDS]
    return counts or unknown or not words or (bool(own) and all(word in _NO_NAME for word in own))


@lru_cache(maxsize=4096)
def classify(text: str) -> Name:
    """The meaning of a name as printed."""
    text = _FACTOR.sub("", text.strip())
    if not text or len(text) > _MAX_NAME:
        return Name(Role.OTHER)
    words = words_of(text)
    scope = scope_of(words)
    own = [word for word in words if word not in TRAIN_WORDS and word not in EVAL_WORDS]
    if _THROUGHPUT.match(text):
        return Name(Role.THROUGHPUT, scope)
    if _VALUE_OF_GROUP.match(text):
        return Name(Role.LOSS, scope, PART)
    if scope is NameScope.NONE and (_is_retrieval(text) or (text[0] == "A" and _DETECTION.fullmatch(text))):
        return Name(Role.OTHER, NameScope.EVAL)
    loss = _loss(own, scope)
    loss = None if loss and loss.rank == PART and "_" in text and text.isupper() else loss  # ``LOSS_ALPHA``
    return _counter(own, text, scope) or _rate(words, scope) or loss or Name(Role.OTHER, scope)


def scope_of(words: list[str]) -> NameScope:
    """Training, evaluation or neither; a name that says both is an evaluation's."""
    if any(word in EVAL_WORDS for word in words):
        return NameScope.EVAL
    return NameScope.TRAIN if any(word in TRAIN_WORDS for word in words) else NameScope.NONE


def _counter(words: list[str], text: str, scope: NameScope) -> Name | None:
    """Epoch, step or batch, or the planned number of them (``num_epochs``, ``Total optimization steps``)."""
    if not words or len(words) > 4:
        return None
    if words == ["i"] and text == "i":
        return Name(Role.BATCH, scope)
    if len(words) == 3 and words[1:] == ["in", "epoch"] and words[0] in STEP_WORDS:
        return Name(Role.BATCH, scope)
    if words in (["batch", "step"], ["batch", "iter"]):
        return Name(Role.BATCH, scope)
    if words in (["num", "updates"], ["acc", "iter"]):
        return Name(Role.STEP, scope)  # counts of what is done, of fairseq and of OpenPCDet
    if len(words) == 3 and words[:2] == ["end", "of"]:
        words = words[2:]  # ``End of epoch 3 / 200``; an "end epoch" is a setting
    head, last = words[:-1], words[-1]
    if last == "num" or (len(words) == 2 and last in _ORDINALS and head[0] in BATCH_WORDS | STEP_WORDS | EPOCH_WORDS):
        head, last = (["num"] if last == "num" else []), words[0]
    elif words == ["batch", "count"]:
        head, last = [], "batch"
    current = [w for w in head if w not in BESIDE_A_COUNTER and not (w in STEP_WORDS and last in STEP_WORDS)]
    planned = bool(current) and all(word in PLAN_WORDS for word in current)
    if current and not planned:
        return None
    for vocabulary, now, plan in (
        (EPOCH_WORDS, Role.EPOCH, Role.EPOCHS),
        (STEP_WORDS, Role.STEP, Role.STEPS),
        (BATCH_WORDS, Role.BATCH, Role.BATCHES),
    ):
        if last in vocabulary:
            planned = (planned or last in EPOCH_PLURALS) and not _PAST.search(text)
            if last == "ep" and text != text.lower() and text not in ("Ep", "EP"):
                return None
            return Name(plan if planned else now, scope)
    return None


def _rate(words: list[str], scope: NameScope) -> Name | None:
    if words == ["lr0"]:
        return None  # the initial rate among a program's settings
    names = [_DIGITS.sub("", word) for word in words]
    bare = [word.removeprefix("d'") for word in words if word not in ("de", "di", "d")]
    is_rate = "lr" in names or any(w in RATE_WORDS for w in words) or any(pair in RATE_PAIRS for pair in pairwise(bare))
    return Name(Role.LEARNING_RATE, scope) if is_rate and NEVER_A_RATE.isdisjoint(names) else None


def _loss(words: list[str], scope: NameScope) -> Name | None:
    """A loss and how well it stands for the whole: 0 plain or total, 1 average, 2 a criterion, 5 some component."""
    if words[:1] == ["l"] and len(words) > 1 and all(word in PIXEL_WORDS for word in words[1:]):
        return Name(Role.LOSS, scope, 0 if words[1:] == ["total"] else PART)
    if words == ["l"] and scope is not NameScope.NONE:
        return Name(Role.LOSS, scope)  # ``L_train``
    if not any(word in LOSS_WORDS for word in words):
        return None
    if any(word in NEVER_A_LOSS for word in words) and not _is_of_value_function(words):
        return None
    rest = [word for word in words if word not in LOSS_WORDS]
    if _is_of_value_function(words):
        return Name(Role.LOSS, scope, PART)
    unknown = [w for w in rest if w not in AVERAGE_WORDS and w not in FILLER_WORDS and w not in WHOLE_WORDS]
    if not unknown:
        rank = 0 if not rest or any(w in WHOLE_WORDS for w in rest) else 1
    elif all(word in CRITERION_WORDS for word in unknown) and ("entropy" not in unknown or "cross" in unknown):
        rank = 2
    else:
        rank = PART
    return Name(Role.LOSS, scope, rank)


def _is_of_value_function(words: list[str]) -> bool:
    """``value loss``, ``mean value function loss``: one part of actor-critic methods; ``loss value`` is none."""
    return "value" in words and any(word in LOSS_WORDS for word in words[words.index("value") + 1 :])
