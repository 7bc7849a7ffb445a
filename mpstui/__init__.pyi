from .api import Curve as Curve
from .api import Image as Image
from .api import Run as Run
from .api import Text as Text
from .api import launch as launch
from .api import run as run
from .api import runs as runs
from .reporting import report as report

__version__: str
