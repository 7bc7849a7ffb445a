"""What a program prints, computes and writes is the same with the agent in it, to the byte."""

from __future__ import annotations

from pathlib import Path

from tests.agent.programs import BOOT, SCRIPT, beat, run

TRACES = (
    SCRIPT
    + r"""
import atexit, copy, inspect, logging, os, pickle, shutil, signal, threading, traceback, warnings
warnings.simplefilter('always')
logging.basicConfig(format='%(filename)s:%(lineno)d %(funcName)s %(message)s')
atexit.register(lambda: (print('goodbye'), sys.stdout.flush()))
print(sys.path, sys.excepthook is sys.__excepthook__, signal.getsignal(signal.SIGURG), 'sitecustomize' in sys.modules)
from torch.utils.data import DataLoader, TensorDataset
class Late(torch.nn.Module):
    def eval(self):
        logging.warning('from a method'); warnings.warn('one level up', stacklevel=2)
        return super().eval()
class Told(torch.optim.SGD):
    def load_state_dict(self, state):
        warnings.warn('where it was called', stacklevel=2)
        return super().load_state_dict(state)
loader = DataLoader(TensorDataset(x), batch_size=8, shuffle=True)
looked_at = [shutil.copyfile, torch.save, torch.load, torch.autograd.backward, torch.nn.Module.eval,
             torch.optim.Optimizer.__init__, torch.optim.Optimizer.load_state_dict, DataLoader.__iter__,
             torch.amp.GradScaler.scale, optimizer.step]
for one in looked_at:
    print(one.__module__, one.__qualname__, inspect.signature(one), inspect.getfullargspec(one), one.__doc__)
    print(inspect.getsource(one)[:60], inspect.iscoroutinefunction(one))
for one in looked_at[:-1]:
    assert pickle.loads(pickle.dumps(one)) is one
for epoch in range(2):
    net.train()
    for batch, in loader: print(step())
    net.eval(); Late().eval()
duplicate = torch.optim.SGD([net.weight, net.weight], lr=0.1)
other = Told(net.parameters(), lr=0.5, momentum=0.9)
other.load_state_dict(copy.deepcopy(optimizer).state_dict())
print(pickle.dumps(net)[-200:], pickle.dumps(optimizer.state_dict()), len(pickle.dumps((net, optimizer))))
print(sorted(vars(pickle.loads(pickle.dumps(optimizer)))), sorted(vars(iter(loader))))
torch.save({'net': net.state_dict(), 'optimizer': optimizer.state_dict()}, 'w.pt')
def fails(what):
    try: what()
    except Exception:
        traceback.print_exc(); print(sys.exc_info()[2].tb_next.tb_frame.f_code.co_name)
fails(lambda: torch.zeros(()).backward())
fails(lambda: torch.save(x, 'no/such/folder'))
fails(lambda: shutil.copyfile('w.pt', 'no/such/folder'))
fails(lambda: other.load_state_dict({}))
fails(lambda: torch.optim.SGD([], lr=1))
fails(lambda: DataLoader([1, 2, 3], sampler=5).__iter__())
fails(lambda: [batch for batch in DataLoader([None])])
print(threading.active_count(), [thread.name for thread in threading.enumerate()])
sys.stdout.flush()
child = os.fork()
if not child:
    step(); torch.save(x, 'child.pt'); print('the child', flush=True); os._exit(0)
print(os.waitpid(child, 0)[1], step())
print(torch.randn(2), torch.initial_seed())
def ends(): torch.zeros(()).backward()
ends()
"""
)


def test_a_program_that_looks_closely_sees_nothing(tmp_path: Path) -> None:
    texts = []
    for agent in (True, False):
        folder = tmp_path / "same"
        folder.mkdir()
        done = run(TRACES, tmp_path / "run", cwd=folder, PYTHONPATH=str(BOOT) if agent else "")
        files = {path.name: path.read_bytes() for path in sorted(folder.glob("*.pt"))}
        texts.append((done.returncode, *done.stdout.splitlines(), *done.stderr.splitlines(), files))
        folder.rename(tmp_path / str(agent))
    assert texts[0] == texts[1]
    assert (texts[0][0], beat(tmp_path / "run")["step"]) == (1, 9)
    assert "where it was called" in str(texts[0])
