"""What the agent takes for the loss: the program's own number, or none."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch.nn.functional import mse_loss
from torch.optim.optimizer import register_optimizer_step_post_hook

from mpstui.agent.hooks import watched
from mpstui.agent.losses import Losses, _name_of

Tensor = torch.Tensor
X = torch.randn(32, 8, generator=torch.Generator().manual_seed(0))


class Unguarded:
    """Its failures are those of the test."""

    is_off = False

    def give_up(self, error: Exception) -> None:
        raise error


class Training:
    """A net, its optimizer, and the agent's eye on both."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.losses = Losses(torch)
        self.net = torch.nn.Linear(8, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.001)

    def read(self) -> Any:
        """What the agent says: the loss and further numbers."""
        return self.losses.read()

    def loss(self, part: int = 0) -> Tensor:
        """The mean over a quarter of the data."""
        mean: Tensor = (self.net(X[part * 8 : part * 8 + 8]) - 1).square().mean()
        return mean

    def accumulate(self, divided: Callable[[Tensor], Tensor], groups: Sequence[int] = (4, 4, 4)) -> float:
        """Some steps of four passes each; what a program would print."""
        for passes in groups:
            for part in range(passes):
                loss = self.loss(part)
                divided(loss).backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
        return loss.item()


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Iterator[Training]:
    made = Training()
    for owner, name, look in (
        (torch.autograd, "backward", made.losses.before_backward),
        (torch.amp.GradScaler, "scale", made.losses.before_scale),
    ):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name), Unguarded(), look))
    hook = register_optimizer_step_post_hook(lambda optimizer, *_: made.losses.stepped(optimizer))
    yield made
    hook.remove()


@pytest.mark.parametrize(
    "divided",
    [
        lambda loss: loss / 4,
        lambda loss: 0.25 * loss,
        lambda loss: loss * (1 / 4),
        lambda loss: loss / torch.tensor(4),
        lambda loss: loss.clone().div_(4),
        lambda loss: loss / 4 / 1,  # by Trainer, and once more by accelerate
        lambda loss: loss,
    ],
)
def test_an_accumulated_loss_is_the_program_s_own(training: Training, divided: Any) -> None:
    printed = training.accumulate(divided)
    assert training.read() == (pytest.approx(printed), {})
    assert training.losses.passes_per_step == 4


def test_a_divided_loss_is_unknown_until_a_step_tells_of_how_many_it_is_one(training: Training) -> None:
    """The lowest value of the whole curve was that of a quarter."""
    (training.loss() / 4).backward()  # type: ignore[no-untyped-call]
    assert training.read() == (None, {})
    training.loss().backward()  # type: ignore[no-untyped-call]
    assert training.read()[0] is not None


@pytest.mark.parametrize(
    ("passes", "usual"),
    [
        ([4, 4, 4, 3, 4, 4, 4, 3], [4] * 8),  # what is left makes a step of its own
        ([4, 4, 7, 4, 7, 4], [4] * 6),  # or is part of the next epoch's first one
        ([4, 4, 2, 2, 2], [4, 4, 4, 2, 2]),  # the program accumulates less from here on
        ([1, 3, 5, 2], [1, 3, 5, 2]),
    ],
)
def test_what_an_epoch_leaves_over_changes_no_accumulation(
    training: Training, passes: list[int], usual: list[int]
) -> None:
    told = []
    for several in passes:
        for part in range(several):
            (training.loss(part) / 4).backward()  # type: ignore[no-untyped-call]
        training.optimizer.step()
        told.append(training.losses.passes_per_step)
    assert told == usual


def test_three_is_no_power_of_two(training: Training) -> None:
    for _ in range(2):
        for part in range(3):
            (training.loss(part) * (1 / 3)).backward()  # type: ignore[no-untyped-call]
        training.optimizer.step()
    assert training.read()[0] == pytest.approx(training.loss(2).item(), rel=0.05)


@pytest.mark.parametrize("enabled", [True, False])
def test_a_divided_loss_is_known_behind_a_grad_scaler(training: Training, enabled: bool) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=enabled)
    printed = training.accumulate(lambda loss: scaler.scale(loss / 4))
    assert training.read()[0] == pytest.approx(printed)


def test_a_last_group_of_fewer_passes_does_not_jump(training: Training) -> None:
    printed = training.accumulate(lambda loss: loss / 4, (4, 4, 1))
    assert training.read()[0] == pytest.approx(printed)


@pytest.mark.parametrize(
    "divided",
    [
        lambda loss: loss / 3,  # by something else than the passes
        lambda loss: loss / 4 + 0.01 * X.sum().requires_grad_(),  # inside
        lambda loss: loss / torch.ones(1, requires_grad=True).sum(),  # by what is no constant
    ],
)
def test_a_division_that_proves_nothing_gives_no_loss(training: Training, divided: Any) -> None:
    training.accumulate(divided)
    assert training.read() == (None, {})


def test_a_loss_that_is_divided_without_accumulating_stays_as_it_is(training: Training) -> None:
    for _ in range(3):
        loss = training.loss() / 4
        loss.backward()  # type: ignore[no-untyped-call]
        training.optimizer.step()
    assert training.read() == (pytest.approx(loss.item()), {})


@pytest.mark.parametrize(
    ("of", "is_sum"),
    [
        (lambda net: (net(X) - 1).square().sum(), True),
        (lambda net: mse_loss(net(X), X[:, :1], reduction="sum") - 0.5 * torch.sum(net.weight), True),
        (lambda net: (net(X) - 1).square().sum() / len(X), False),
        (lambda net: -(0.0 + (net(X) - 1).square().sum()) / 1, True),  # of one sample of several, as an ELBO's
        (lambda net: torch.stack([net(X).mean(), net(X).square().mean()]).sum(), False),
        (lambda net: mse_loss(net(X), X[:, :1]) + 0.1 * net.weight.square().sum(), False),
    ],
)
def test_a_sum_over_a_batch_is_called_a_sum(training: Training, of: Any, is_sum: bool) -> None:
    loss = of(training.net)
    loss.backward()
    training.optimizer.step()
    value = pytest.approx(loss.item())
    assert training.read() == ((None, {"loss_sum": value}) if is_sum else (value, {}))


def test_the_losses_of_a_gan_are_curves_of_their_own(training: Training) -> None:
    critic = torch.nn.Linear(1, 1)
    critics = torch.optim.Adam(critic.parameters())
    for _ in range(3):
        err_real = (critic(X[:, :1]) - 1).square().mean()
        err_real.backward()
        err_fake = critic(training.net(X).detach()).square().mean()
        err_fake.backward()
        critics.step()
        err_g = (critic(training.net(X)) - 1).square().mean()
        err_g.backward()
        training.optimizer.step()
    told = {"err_real": err_real.item(), "err_fake": err_fake.item(), "err_g": err_g.item()}
    assert training.read() == (None, pytest.approx(told))


def test_one_loss_after_another_stays_one_curve(training: Training) -> None:
    for _ in range(3):
        training.loss().backward()  # type: ignore[no-untyped-call]
        training.optimizer.step()
    for _ in range(3):
        final = training.loss(1)
        final.backward()  # type: ignore[no-untyped-call]
        training.optimizer.step()
    assert training.read() == (pytest.approx(final.item()), {})


def test_a_loss_written_twice_for_no_sync_is_one(training: Training) -> None:
    for _ in range(2):
        for part in range(4):
            loss = training.loss(part) / 4
            if part < 3:
                loss.backward()  # type: ignore[no-untyped-call]
            else:
                loss.backward()  # type: ignore[no-untyped-call]
        training.optimizer.step()
    assert training.read() == (pytest.approx(loss.item() * 4), {})


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("    errD_real.backward()", "errD_real"),
        ("scaler.scale(loss).backward()", "loss"),
        ("scaler.scale(errD / n).backward()", "errD"),
        ("self.manual_backward(g_loss)", "g_loss"),
        ("self.loss_G.backward(retain_graph=True)", "loss_G"),
        ("loss.mean().backward()", "loss"),
        ("sum(losses).backward()", "losses"),
        ("errG = (a * b).mean(); errG.backward()", "errG"),
        ("trainer.fit(model)", ""),
        ("", ""),
    ],
)
def test_the_name_of_a_loss_is_read_from_its_line(line: str, name: str) -> None:
    assert _name_of(line, is_weighted=False) == name


@pytest.mark.parametrize("batches", [1, 4])
def test_a_step_that_evaluates_the_loss_many_times_accumulates_none_of_them(training: Training, batches: int) -> None:
    """LBFGS calls its closure up to 20 times a step: each is a whole batch, or several whose gradients add up."""
    training.optimizer = torch.optim.LBFGS(training.net.parameters(), lr=0.01)  # type: ignore[assignment]

    def closure() -> float:
        training.optimizer.zero_grad()
        for part in range(batches):
            loss = training.loss(part) / batches
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    for _ in range(3):
        training.optimizer.step(closure)
        assert training.losses.passes_per_step == batches
        assert training.losses.searches
    printed = closure()
    assert training.read() == (pytest.approx(printed * batches), {})


def test_what_a_loss_is_passed_as_its_gradient_does_not_give_it_its_name(training: Training) -> None:
    one = torch.tensor(1.0)
    for _ in range(2):
        errD, errG = training.loss(), training.loss(1)
        errD.backward(one)  # type: ignore[no-untyped-call]
        errG.backward(gradient=one)  # type: ignore[no-untyped-call]
        training.optimizer.step()
    assert set(training.read()[1]) == {"errD", "errG"}


def test_no_variable_of_the_program_is_kept(training: Training) -> None:
    """A look at the variables of a frame keeps them all until its function ends: a batch and what was made of it."""
    let_go: list[int] = []
    for step in range(2):
        batch = torch.ones(4, 8)
        weakref.finalize(batch, let_go.append, step)
        training.net(batch).sum().backward(torch.tensor(1.0))
        training.optimizer.step()
        del batch
        assert let_go == [*range(step + 1)]
