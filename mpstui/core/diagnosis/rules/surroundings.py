"""What a program expects from its environment and does not find: a launcher, network, server, terminal, Python."""

from ..model import Remedy, Rule

_NOT_ELSEWHERE = r"(?!: [\w-]{1,20}(?: \w{1,20}){0,3} for url: https?://(?!huggingface\.|hf\.|hf-mirror\.|hub\.))"
"""Excludes the same message from a server other than the Hub."""

RULES = (
    Rule(
        id="needs_launcher",
        title="The script wants to be started by torchrun",
        cause="It reads which process it is (LOCAL_RANK, RANK, WORLD_SIZE, MASTER_ADDR) from its environment, which "
        "`torchrun` or `accelerate launch` fills in and plain `python` does not.",
        remedy=Remedy(
            text='Start it as `torchrun --nproc-per-node 1 SCRIPT ...`, or with launcher = "torchrun" in its profile.'
        ),
        sources=("torch/distributed/rendezvous.py",),
        patterns=(
            r"KeyError: \W?(?:LOCAL_RANK|LOCAL_WORLD_SIZE|RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|SLURM_PROCID)\b",
            r"environment variable (?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK) expected, but not set",
            r"Default process group has not been initialized, please make sure to call init_process_group",
            r"the following arguments are required: --local[-_]rank",
        ),
        confidence=0.92,
        outranks=("argparse", "cuda_hardcoded", "dist_mps"),
    ),
    Rule(
        id="no_network",
        title="A download failed: the network cannot be reached",
        cause="The program asked another machine for a model, a data set or a service, and its name was not found or "
        "nothing answered. Trainings on machines without internet must find these files on the disk.",
        remedy=Remedy(
            text="Fetch the files once where there is a network and name their folder; a filled Hugging Face cache is "
            "used with HF_HUB_OFFLINE=1. Behind a proxy set HTTPS_PROXY; wandb needs WANDB_MODE=offline."
        ),
        sources=("huggingface/huggingface_hub#2319", "alvinliu0/HumanGaussian#4"),
        patterns=(
            r"Name or service not known",
            r"nodename nor servname provided",
            r"Temporary failure in name resolution",
            r"No address associated with hostname",
            r"getaddrinfo failed",
            r"Failed to resolve \W?[\w.-]{1,80}",
            r"Could not resolve (?:host|hostname)\b",
            r"Network is unreachable",
            r"No route to host",
            r"Max retries exceeded with url",
            r"LocalEntryNotFoundError",
            r"OfflineModeIsEnabled",
            r"Cannot reach \S{1,120}: offline mode is enabled",
            r"couldn't connect to \W?https?://",
            r"(?:check|make sure) your (?:internet )?connection",
            r"outgoing traffic has been disabled",
            r"Cannot find the requested files in the (?:local|disk|cached)",
            r"URLError: <urlopen error",
            r"(?:Connect|Read)Timeout(?:Error)?: .{0,160}(?:timed out|timeout)",
            r"Failed to (?:download|fetch) .{1,120}https?://",
            r"Connection broken: (?:IncompleteRead|ConnectionResetError|InvalidChunkLength)",
        ),
        confidence=0.9,
        outranks=("module_missing", "server_refused", "ckpt_corrupt", "hub_name"),
    ),
    Rule(
        id="server_refused",
        title="A server that the program needs does not answer",
        cause="Nothing listens at the address the program connects to: a database (PostgreSQL, MySQL, Redis) or a "
        "tracking server that is not running, or is running elsewhere.",
        remedy=Remedy(text="Start that server, or correct the host and port in the program's settings."),
        sources=("worldveil/dejavu#306", "mikeizbicki/cmc-csci143#331"),
        patterns=(
            r"connection to server at .{1,120} failed",
            r"could not connect to server: ",
            r"Is the server running .{0,60}on (?:that|host) ",
            r"Can't connect to (?:local )?MySQL server",
            r"Error (?:61|111) connecting to \S{1,80}",
            r"ServerSelectionTimeoutError",
            r"ConnectionRefusedError: ",
            r"Failed to establish a new connection: \[Errno (?:61|111)\]",
            r"\[Errno (?:61|111)\] Connection refused",
        ),
        weak_patterns=(r"Connection refused\b",),
        confidence=0.9,
    ),
    Rule(
        id="no_terminal",
        title="The program wants a terminal",
        cause="It asks how wide its terminal is, or reads a key. Under mpstui it writes into a file and has none.",
        remedy=Remedy(
            text="Switch its progress display off where it has an option for that, or start it under a terminal of its "
            "own: `mpstui run -- script -qfec 'COMMAND' /dev/null` (macOS: `script -q /dev/null COMMAND`)."
        ),
        sources=("kuangliu/pytorch-cifar utils.py", "docs.python.org/3/library/os.html#os.get_terminal_size"),
        patterns=(
            r"stty: .{0,60}Inappropriate ioctl for device",
            r"(?:OSError|error): .{0,30}Inappropriate ioctl for device",
            r"stdin.{0,20} (?:isn't|is not) a terminal",
            r"the input device is not a TTY",
            r"_curses\.error: (?:setupterm|cbreak|nocbreak)",
        ),
        confidence=0.88,
        outranks=("shape_bug",),
    ),
    Rule(
        id="asks_a_question",
        title="The program asks for an answer",
        cause="It waits for a line to be typed, usually to confirm that something old may be deleted. Under mpstui "
        "nobody can type into its standard input.",
        remedy=Remedy(
            text="Give the answer with the command, where it has an option for that, or do beforehand what it asks "
            "about (remove or rename the old folder). `mpstui run -- sh -c 'yes | COMMAND'` says yes to everything."
        ),
        sources=("docs.python.org/3/library/functions.html#input", "yinboc/prototypical-network-pytorch utils.py"),
        patterns=(r"EOFError: EOF when reading a line",),
        confidence=0.9,
        outranks=("no_terminal", "shape_bug"),
    ),
    Rule(
        id="wandb_login",
        title="Weights & Biases wants a login",
        cause="wandb has no key for this account and no terminal to ask for one.",
        remedy=Remedy(
            text="Run `wandb login` once in a terminal, or start again with WANDB_MODE=offline: it then writes to the "
            "disk alone, and `wandb sync` uploads it later.",
            env={"WANDB_MODE": "offline"},
            otherwise="Run `wandb login` once in a terminal.",
        ),
        sources=("OptimalScale/LMFlow#65", "isl-org/ZoeDepth#112", "hiyouga/EasyR1#69"),
        patterns=(
            r"api_key not configured",
            r"No API key configured\. Use `wandb login`",
            r"wandb: ERROR .{0,60}(?:API key|login)",
            r"wandb\.errors\.\S{0,40}AuthenticationError",
        ),
        confidence=0.95,
        outranks=("no_terminal", "asks_a_question", "no_network"),
    ),
    Rule(
        id="hub_login",
        title="The Hub refuses access to a model or data set",
        cause="The files are gated or private, and the program has no token of an account that may read them.",
        remedy=Remedy(text="Accept the terms on its page, then run `hf auth login` once or set HF_TOKEN."),
        sources=("huggingface_hub/errors.py",),
        patterns=(
            r"GatedRepoError",
            r"Cannot access gated repo",
            r"401 Client Error" + _NOT_ELSEWHERE,
            r"403 Client Error(?=: Forbidden)" + _NOT_ELSEWHERE,
        ),
        confidence=0.93,
        outranks=("no_network", "ckpt_corrupt"),
    ),
    Rule(
        id="hub_name",
        title="There is no model or data set of this name",
        cause="The name is no folder here (a relative path begins in the folder that the run is started in), and the "
        "Hub has nothing by that name, or shows it only to its members.",
        remedy=Remedy(
            text="Correct the path or the name; if it is a folder, check that it holds what was saved with "
            "save_pretrained. For a private one run `hf auth login` once."
        ),
        sources=("hiyouga/LlamaFactory#8266", "huggingface_hub/errors.py"),
        patterns=(
            r"is not a local folder and is not a valid model identifier",
            r"HFValidationError: Repo id must",
            r"\bRepositoryNotFoundError\b",
            r"DatasetNotFoundError: ",
            r"OSError: Can't load (?:\w+ ){1,3}(?:for|of) \W",
            r"does not appear to have a file named \w",
        ),
        numbers=((r"(?:Repo id must .{1,160}: |Can't load .{1,40} (?:for|of) |Dataset )'([^'\n]{1,200})'", "{0}"),),
        confidence=0.93,
        outranks=("hub_login", "path_missing", "ckpt_corrupt"),
    ),
    Rule(
        id="program_missing",
        title="The program was not found",
        cause="A shell script calls a program that is not on its PATH. Where it is `python`, the environment (conda, "
        "venv) that has it was not active in the shell that launched this.",
        remedy=Remedy(
            text="Activate the environment before launching, or write the full path of its Python; many systems only "
            "have `python3`."
        ),
        sources=("bash(1)",),
        patterns=(
            r"(?:line \d+|sh|bash|zsh|env): [\w./~+-]{1,120}: (?:command )?not found",
            r"command not found: [\w./~+-]{1,120}",
            r"env: \W?[\w.-]{1,60}\W?: No such file or directory",
            r"Failed to find (?:the )?\W?conda\W? (?:command|executable)",
            r"CommandNotFoundError: Your shell has not been properly configured",
        ),
        confidence=0.88,
        codes=(127, 126, 1),
    ),
    Rule(
        id="no_permission",
        title="No permission for a file or folder",
        cause="The account that the run belongs to may not read or write what the message names: another's folder, a "
        "disk that is read-only; on macOS also Documents, Desktop, Downloads and external disks, which each program "
        "must be allowed.",
        remedy=Remedy(
            text="Give the run a folder of its own, or the account the right (`ls -l` shows whose it is; a script "
            "needs `chmod +x`). On macOS: System Settings, Privacy & Security, Full Disk Access, for the terminal or "
            "sshd."
        ),
        sources=("docs.python.org/3/library/exceptions.html#PermissionError",),
        patterns=(
            r"PermissionError: \[Errno (?:1|13)\]",
            r"\[Errno 30\] Read-only file system",
            r"(?:line \d+|\bsh|bash|zsh): [\w./~+-]{1,120}: Permission denied",
            r"\bexecl failed: Permission denied",  # torch's helper lost its executable bit, as in an unpacked archive
        ),
        confidence=0.88,
        codes=(1, 126),
        outranks=("dl_share_mps",),
        numbers=((r"\[Errno (?:1|13|30)\] [^'\":]{1,80}: '([^']{1,200})'", "{0}"),),
    ),
    Rule(
        id="hub_busy",
        title="The Hub was asked too often",
        cause="The server refuses more requests from this address or account for a while.",
        remedy=Remedy(
            text="Wait some minutes; a logged-in account (`hf auth login`) may ask more often, and with "
            "HF_HUB_OFFLINE=1 files that are already in the cache are used without asking."
        ),
        sources=("huggingface_hub/errors.py",),
        patterns=(r"429 Client Error" + _NOT_ELSEWHERE,),
        confidence=0.93,
        outranks=("no_network", "hub_login"),
    ),
)
