"""A small assignment with real checks, and what is handed in for it: right, wrong, broken, hostile.

Each function with ``@case`` makes one submission from the answer key and says what must come of it.
"""

import ast
import copy
import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

NAME = "01_memory_bound_decoding"
SOLUTIONS = {
    "matrix_weights": """
        def matrix_weights(shape):
            attention = shape.hidden * shape.head_dim * (2 * shape.heads + 2 * shape.kv_heads)
            layer = attention + 3 * shape.hidden * shape.intermediate
            return shape.layers * layer + shape.hidden * shape.vocab
        """,
    "attainable_flops": """
        def attainable_flops(intensity, peak_flops, bandwidth):
            return min(peak_flops, intensity * bandwidth)
        """,
    "cached_decode": """
        def cached_decode(model, prompt, max_new_tokens):
            new, unread = [], list(prompt)
            for _ in range(max_new_tokens):
                unread = [int(model.extend(unread)[-1].argmax())]
                new += unread
            return new
        """,
    "naive_decode": """
        def naive_decode(forward, prompt, max_new_tokens):
            tokens = list(prompt)
            for _ in range(max_new_tokens):
                tokens.append(int(forward(tokens)[-1].argmax()))
            return tokens[len(prompt):]
        """,
    "batch_intensity": """
        def batch_intensity(shape, batch, context):
            from specdec_lab.roofline import forward_bytes, forward_flops, matrix_weights

            weights = 4 * matrix_weights(shape)
            caches = forward_bytes(shape, 1, context, 4) - weights
            return batch * forward_flops(shape, 1, context) / (weights + batch * caches)
        """,
}
WRONG = {
    "matrix_weights": "def matrix_weights(shape):\n    return 5",
    "attainable_flops": "def attainable_flops(intensity, peak_flops, bandwidth):\n    return 5.0",
    "cached_decode": "def cached_decode(model, prompt, max_new_tokens):\n    return [5]",
    "naive_decode": "def naive_decode(forward, prompt, max_new_tokens):\n    return [5]",
}
FUNCTIONS = tuple(WRONG)
"""Exercises with a visible check for 2 points and a hidden one for 1."""
WORTH = {f"{name}_check": 2.0 for name in FUNCTIONS} | {f"{name}_hidden": 1.0 for name in FUNCTIONS}
WORTH |= {"predicted_v8_check": 1.0, "batch_intensity_bonus_2": 2.0, "why_written": 2.0}
WORTH |= {"quiz_check": 5.0}


def source() -> str:
    """The assignment in the notation of ``solutions/NAME/NAME.py``."""
    imports = "import torch\n\nfrom specdec_lab.checks import memory_bound_decoding"
    written = "# Because\n### BEGIN SOLUTION\n# of the bandwidth.\n### END SOLUTION"
    cells = ["# %% [markdown]\n# # A small assignment", f"# %%\n{imports}"]
    for seed, (name, code) in enumerate(SOLUTIONS.items()):
        definition, *body = textwrap.dedent(code).strip().splitlines()
        cells += [
            f'# %% [task] {name} title="{name}" difficulty=1 minutes=1\n# Write it.',
            f"# %% [exercise] {name}",
            "\n".join([definition, "    ### BEGIN SOLUTION", *body, "    ### END SOLUTION"]),
        ]
        if name in FUNCTIONS:
            cells += [
                f"# %% [check] {name} points=2",
                f"# %% [hidden check] {name} points=1 seed={seed}",
            ]
        else:
            cells += [f"# %% [bonus check] {name} points=2"]
    cells += [
        '# %% [task] predicted_v8 title="Predict" difficulty=1 minutes=1\n# Guess.',
        "# %% [exercise] predicted_v8\npredicted_v8 = None\n### BEGIN SOLUTION\npredicted_v8 = 1.5",
        "### END SOLUTION\n# %% [check] predicted_v8 points=1",
        '# %% [task] why title="Why" difficulty=1 minutes=1\n# Say why.',
        f"# %% [written] why points=2\n{written}",
        f"# %% [quiz] points=5\n{_questions()}",
    ]
    return "\n".join(cells) + "\n"


def _questions() -> str:
    """The shipped quiz's own: that one is graded."""
    file = Path(__file__).parents[1] / "solutions" / NAME / f"{NAME}.py"
    _, _, quiz = file.read_text(encoding="utf-8").partition("# %% [quiz] points=5\n")
    return quiz.partition("\n\n")[0]


# --- what a case is ----------------------------------------------------------------------------

Files = dict[str, str | bytes]


@dataclass
class Case:
    """A submission, and what must come of it.

    Args:
        make: from the answer key, the notebook or the files that are handed in.
        lost: grade id, or exercise for all its checks -> a phrase of the message. All else has full
            points; a written answer waits for a person.
        problem: a phrase of the reason why it cannot be graded at all.
        limits: settings of ``ExecuteWithLimits``.
        of_release: made from the released notebook instead.
    """

    make: Callable[[NotebookNode], NotebookNode | Files]
    lost: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    limits: dict[str, Any] = field(default_factory=dict)
    of_release: bool = False

    def files(self, key: NotebookNode, release: NotebookNode) -> Files:
        made = self.make(copy.deepcopy(release if self.of_release else key))
        return {f"{NAME}.ipynb": json.dumps(made)} if isinstance(made, NotebookNode) else made

    def phrase(self, grade_id: str) -> str | None:
        """What a check's message must hold; None if its points must be full."""
        exercise = grade_id.rpartition("_bonus_")[0] or grade_id.rpartition("_")[0]
        return self.lost.get(grade_id, self.lost.get(exercise))


CASES: dict[str, Case] = {}


def _brief(cell: NotebookNode) -> int:
    return 60 if "import torch" in cell.source or "import widgets" in cell.source else 3


BRIEFLY = {"timeout_func": _brief, "iopub_timeout": 2}
"""Limits for what never ends: 3 seconds, but for a cell that imports."""


def case(**expected: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a case, named after its function."""

    def add(make: Callable[..., Any]) -> Callable[..., Any]:
        CASES[make.__name__] = Case(make, **expected)
        return make

    return add


def find(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def answer(notebook: NotebookNode, **codes: str) -> NotebookNode:
    """Write code into solution cells."""
    for name, code in codes.items():
        find(notebook, name).source = textwrap.dedent(code).strip()
    return notebook


def first(notebook: NotebookNode, *codes: str) -> NotebookNode:
    """Put cells behind the first code cell."""
    cells = [new_code_cell(textwrap.dedent(code).strip()) for code in codes]
    place = 1 + next(i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code")
    notebook.cells[place:place] = cells
    return notebook


def graded(notebook: NotebookNode, *names: str) -> list[NotebookNode]:
    """The check cells of some exercises."""
    ids = [f"{name}_{kind}" for name in names for kind in ("check", "hidden")]
    return [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") in ids]


def drop(notebook: NotebookNode, *cells: NotebookNode) -> None:
    gone = {id(cell) for cell in cells}
    notebook.cells = [cell for cell in notebook.cells if id(cell) not in gone]


def as_markdown(cell: NotebookNode) -> None:
    cell.cell_type = "markdown"
    cell.pop("outputs", None)
    cell.pop("execution_count", None)


# --- as it should be ---------------------------------------------------------------------------


@case()
def right(key):
    return key


NOTHING = dict.fromkeys((*FUNCTIONS, "batch_intensity", "predicted_v8", "quiz"), "not implemented yet")


@case(of_release=True, lost=NOTHING | {"why_written": "no answer yet"})
def blank(release):
    return release


# --- cells deleted, turned, edited, copied -----------------------------------------------------


def _tampered_checks(key):
    drop(key, *graded(key, "matrix_weights"))
    for cell in graded(key, "attainable_flops"):
        as_markdown(cell)
    for cell in graded(key, "cached_decode"):
        cell.source = "print('passed')"
    for cell in graded(key, "naive_decode"):
        cell.cell_type = "raw"
        cell.metadata.nbgrader.grade = cell.metadata.nbgrader.locked = False
    find(key, "predicted_v8_check").metadata.tags = ["skip-execution"]
    return key


@case()
def checks_deleted_turned_edited_skipped_under_right_answers(key):
    return _tampered_checks(key)


@case(lost={name: f"✗ {name}" for name in (*FUNCTIONS, "predicted_v8")})
def checks_deleted_turned_edited_skipped_under_wrong_answers(key):
    return _tampered_checks(answer(key, **WRONG, predicted_v8="predicted_v8 = -1"))


@case(
    lost={
        "matrix_weights": "not implemented yet",
        "cached_decode": "✗ cached_decode",
        "naive_decode": "✗ naive_decode",
    }
)
def solutions_deleted_turned_copied(key):
    """Of copies, the one that ran last before the check counts, as it does for the learner."""
    drop(key, find(key, "matrix_weights"))
    as_markdown(find(key, "predicted_v8"))
    for name, wrong_first in (("attainable_flops", True), ("cached_decode", False)):
        solution = find(key, name)
        wrong = copy.deepcopy(solution)
        wrong.source = WRONG[name]
        key.cells.insert(key.cells.index(solution) + (not wrong_first), wrong)
    too_late = copy.deepcopy(find(key, "naive_decode"))
    answer(key, naive_decode=WRONG["naive_decode"])
    key.cells.append(too_late)
    return key


@case()
def two_answers_in_one_cell(key):
    moved = find(key, "attainable_flops")
    find(key, "matrix_weights").source += "\n\n" + moved.source
    drop(key, moved)
    return key


@case(of_release=True, lost=NOTHING)
def only_a_written_answer_and_an_empty_copy_of_its_cell(release):
    written = find(release, "why_written")
    release.cells.append(copy.deepcopy(written))
    written.source = "Because memory is slow."
    return release


# --- metadata ----------------------------------------------------------------------------------


@case()
def metadata_stripped(key):
    for cell in key.cells:
        cell.metadata = {}
    return key


@case()
def metadata_and_ids_stripped(key):
    for number, cell in enumerate(key.cells):
        cell.metadata = {}
        cell.id = f"cell-{number}"
    return key


@case(lost={"naive_decode": "✗ naive_decode"})
def metadata_stripped_and_checks_edited(key):
    for number, cell in enumerate(answer(key, naive_decode=WRONG["naive_decode"]).cells):
        if "check" in cell.source:
            cell.source += "\n# edited"
        cell.metadata = {}
        cell.id = f"cell-{number}"
    return key


@case(lost={"cached_decode": "✗ cached_decode"})
def metadata_garbled(key):
    def meta(grade_id):
        return find(key, grade_id).metadata

    answer(key, cached_decode=WRONG["cached_decode"])
    cells = {name: meta(name) for name in (*WORTH, *SOLUTIONS, "predicted_v8")}
    cells["matrix_weights"].nbgrader.schema_version = 1
    cells["matrix_weights_check"].nbgrader = {"schema_version": 0, "grade": True}
    cells["matrix_weights_hidden"].nbgrader.schema_version = 99
    cells["attainable_flops"].nbgrader.grade_id = "cached_decode"
    cells["attainable_flops_check"].nbgrader = "text"
    cells["attainable_flops_hidden"].nbgrader = ["a", "list"]
    cells["cached_decode"].nbgrader |= {"grade": True, "points": 100}
    cells["cached_decode_check"].nbgrader.points = 100
    cells["cached_decode_hidden"].nbgrader.points = "many"
    cells["naive_decode"].nbgrader.grade_id = "naive_decode_check"
    cells["naive_decode_check"].nbgrader.grade_id = "naive_decode"
    cells["naive_decode_hidden"].nbgrader.grade_id = "no_such_cell"
    cells["predicted_v8"].nbgrader.grade_id = ["unhashable"]
    cells["predicted_v8_check"].nbgrader |= {"locked": "no", "task": True, "checksum": 7}
    cells["batch_intensity"].tags = None
    cells["batch_intensity_bonus_2"].nbgrader.points = -3
    cells["why_written"].nbgrader.solution = False
    key.metadata = {"kernelspec": {"name": "julia-1.9", "display_name": "Julia", "language": "julia"}}
    return key


@case()
def saved_by_an_older_program_without_ids(key):
    drop(key, *graded(key, "matrix_weights"), find(key, "why_written"))
    for cell in key.cells:
        cell.pop("id")
        cell.source = cell.source.splitlines(keepends=True)
    key.nbformat_minor = 0
    return key


# --- files -------------------------------------------------------------------------------------


@case()
def all_ids_the_same_and_a_second_notebook_of_another_name(key):
    for cell in key.cells:
        cell.id = "matrix_weights"
    return {f"{NAME}.ipynb": json.dumps(key), "notes.ipynb": "not even JSON"}


@case(problem="none of the 2 notebooks handed in is called 01_memory_bound_decoding.ipynb")
def two_notebooks_of_unknown_name(key):
    return {"a.ipynb": json.dumps(key), "b.ipynb": json.dumps(key)}


@case(problem="no notebook was handed in")
def no_notebook(_key):
    return {"notes.txt": "see my repository", "._01_memory_bound_decoding.ipynb": b"\0\5\26\7"}


@case(problem="does not appear to be JSON")
def not_json(_key):
    return {f"{NAME}.ipynb": "<html>404 Not Found</html>"}


@case(problem="does not appear to be JSON")
def cut_off_by_a_full_disk(key):
    return {f"{NAME}.ipynb": json.dumps(key)[:5000]}


@case(problem="UnicodeDecodeError")
def not_text(_key):
    return {f"{NAME}.ipynb": bytes(range(256))}


@case(problem="FileNotFoundError")
def its_own_folder_deleted(key):
    return first(key, "import os, shutil\nshutil.rmtree(os.getcwd())")


@case(problem="Error")
def json_but_no_notebook(_key):
    return {f"{NAME}.ipynb": "{}"}


@case(problem="Error")
def a_list(_key):
    return {f"{NAME}.ipynb": "[1, 2]"}


@case(problem="Error")
def a_cell_without_metadata(key):
    key.cells[3].metadata = None
    return key


@case(problem="Error")
def a_cell_without_text(key):
    key.cells[3] = {"cell_type": "code", "metadata": {}, "id": "x"}
    return key


@case()
def renamed_and_files_beside_it(key):
    first(key, "import json, pathlib", "pathlib.Path('results/speed.json').write_text('{}')")
    return {
        f"{NAME}-Copy1.ipynb": json.dumps(key),
        "torch.py": "raise ImportError('not the real torch')",
        "specdec_lab/__init__.py": "raise ImportError('not the real library')",
        "results/speed.json": b"\0" * 30_000_000,
        "results/corrupt.json": "{'a': ",
        "nbgrader_config.py": "raise SystemExit",
        "ipython_config.py": "raise SystemExit",
    }


# --- the quiz ----------------------------------------------------------------------------------


def _clicked(key, answers_json):
    """The key with no letter typed, and a file with choices beside it."""
    typed = find(key, "quiz_answers")
    typed.source = typed.source.partition("\n### BEGIN SOLUTION")[0]
    return {f"{NAME}.ipynb": json.dumps(key), "answers.json": answers_json}


def right_letters(key) -> dict[str, str]:
    """As ``answers.json`` has them."""
    code = find(key, "quiz_answers").source.partition("### BEGIN SOLUTION\n")[2]
    letters: dict[int, str] = ast.literal_eval(code.splitlines()[0].partition(" = ")[2])
    return {str(number): letter for number, letter in letters.items()}


@case()
def quiz_clicked(key):
    return _clicked(key, json.dumps({"quiz": NAME, "answers": right_letters(key)}))


@case(lost={"quiz": "answers.json is not used: it is for the quiz '02_greedy_draft_verify'"})
def quiz_clicked_in_another_notebook(key):
    other = {"quiz": "02_greedy_draft_verify", "answers": right_letters(key)}
    return _clicked(key, json.dumps(other))


@case()
def quiz_typed_and_a_folder_in_the_place_of_the_choices(key):
    return {f"{NAME}.ipynb": json.dumps(key), "answers.json/deep/answers.json": "[" * 1_000_000}


# --- what code does ----------------------------------------------------------------------------


@case()
def noise_in_a_right_answer(key):
    first(
        key,
        """
        import logging, sys, time, warnings
        from tqdm import tqdm
        logging.basicConfig(level=logging.DEBUG)
        logging.warning("before")
        warnings.warn("before")
        print("before", file=sys.stderr)
        """,
    )
    noise = """
    logging.warning("inside")
    logging.getLogger("mine").error("inside")
    warnings.warn("inside")
    print("inside", file=sys.stderr)
    sys.stderr.write("inside")
    for _ in tqdm(range(3)):
        time.sleep(0.01)
    """
    for name in FUNCTIONS:
        cell = find(key, name)
        definition, _, body = cell.source.partition("\n")
        cell.source = "\n".join([definition, textwrap.indent(textwrap.dedent(noise), "    "), body])
    find(key, "predicted_v8").source += "\nprint('on stderr', file=sys.stderr)"
    return key


@case()
def odd_habits_and_right_answers(key):
    """Names taken, another folder, odd characters, own tools for profiling and for alarms."""
    names = (
        "torch check print len list min range int sum shape model forward prompt quiz afresh attempt"
    )
    shadows = [f"{name} = None" for name in names.split()]
    for name in FUNCTIONS:
        find(key, name).source = "from builtins import *\n" + find(key, name).source
    return first(
        key,
        "import os, tempfile\nos.chdir(tempfile.mkdtemp())",
        "π = 'Grüße, 世界 \U0001f680 \\ud800'\nprint('Grüße, 世界 \U0001f680', '\\x1b[31m', '\\x00')",
        "x = '" + "long " * 100_000 + "'",
        "import sys\nsys.setprofile(lambda frame, event, argument: None)",
        "import signal\nsignal.signal(signal.SIGALRM, lambda *_: 1 / 0)\nsignal.alarm(3600)",
        "%load_ext autoreload\n%autoreload 2",
        "import io, sys\nsys.stdout = sys.stderr = io.StringIO()",
        "\n".join(shadows),
    )


@case()
def leaving_at_the_top_level(key):
    return first(
        key,
        "input('name? ')",
        "import getpass\ngetpass.getpass()",
        "exit()",
        "quit()",
        "exit",
        "import sys\nsys.exit()",
        "raise SystemExit(3)",
        "get_ipython().ask_exit()",
    )


@case(
    lost={
        "matrix_weights": "StdinNotImplementedError",
        "attainable_flops": "your code raised SystemExit",
        "cached_decode": "exit() ends the kernel",
        "naive_decode": "exit() ends the kernel",
    }
)
def leaving_inside_an_answer(key):
    return answer(
        key,
        matrix_weights="def matrix_weights(shape):\n    return int(input('how many? '))",
        attainable_flops="import sys\ndef attainable_flops(*_):\n    sys.exit(0)",
        cached_decode="def cached_decode(*_):\n    exit()",
        naive_decode="def naive_decode(*_):\n    quit()",
    )


@case(
    lost={
        "matrix_weights": "expected a number",
        "attainable_flops": "✗ attainable_flops",
        "cached_decode": "✗ cached_decode",
        "naive_decode": "calls the library's",
        "predicted_v8": "expected a number",
    }
)
def lies(key):
    yes = """
    class Yes:
        def __eq__(self, other): return True
        __lt__ = __gt__ = __le__ = __ge__ = __eq__
        def __bool__(self): return True
        def __float__(self): return 1.0

    class YesFloat(float):
        __eq__ = __lt__ = __gt__ = __le__ = __ge__ = lambda self, other: True
        __hash__ = float.__hash__

    class YesList(list):
        __eq__ = lambda self, other: True
    """
    return answer(
        first(key, yes),
        matrix_weights="""
        def matrix_weights(shape):
            get_ipython().displayhook(2.0)  # nbgrader takes a result for the points
            return Yes()
        """,
        attainable_flops="def attainable_flops(*_):\n    return YesFloat(5.0)",
        cached_decode="def cached_decode(*_):\n    return YesList([5])",
        naive_decode="from specdec_lab.checks.references import naive_decode as other\n"
        "def naive_decode(*given):\n    return other(*given)",
        predicted_v8="predicted_v8 = Yes()",
    )


@case(
    lost={
        "matrix_weights_hidden": "✗ matrix_weights",
        "attainable_flops": "✗ attainable_flops",
        "cached_decode": "✗ cached_decode",
        "naive_decode": "✗ naive_decode",
    }
)
def checks_replaced(key):
    """It works once: the first hidden check loads all checks anew."""
    replace = """
    import specdec_lab.checks.memory_bound_decoding as checks
    for name in ("matrix_weights", "attainable_flops", "cached_decode", "naive_decode"):
        setattr(checks, name, lambda *given, **options: None)
    """
    return answer(first(key, replace), **WRONG)


@case(
    lost={
        "attainable_flops": "The cell with `attainable_flops` did not run to its end. SyntaxError",
        "cached_decode": "your code raised ValueError: xxxxx",
        "predicted_v8": "The cell with `predicted_v8` did not run to its end. ZeroDivisionError",
    }
)
def errors_short_and_long(key):
    return answer(
        first(key, "this is not Python", "%no_such_magic", "raise ValueError('x' * 5_000_000)"),
        attainable_flops="def attainable_flops(intensity:\n    return",
        cached_decode="def cached_decode(*_):\n    raise ValueError('x' * 5_000_000)",
        predicted_v8="predicted_v8 = 1 / 0",
    )


# --- output ------------------------------------------------------------------------------------


@case(lost={"predicted_v8": "did not run to its end. OutputFlood: this cell wrote more than"})
def floods_of_output(key):
    flood = """
    def attainable_flops(intensity, peak_flops, bandwidth):
        print("x" * 10_000_000)
        return min(peak_flops, intensity * bandwidth)
    """
    threads = """
    import threading, time

    lines = [0]

    def for_ever():
        while True:
            print("still here")

    def in_spite_of_all():
        while True:
            try:
                print("still here")
                lines[0] += 1
            except BaseException:
                pass

    threading.Thread(target=for_ever, daemon=True).start()
    threading.Thread(target=in_spite_of_all).start()
    before = -1
    while before != lines[0]:
        before = lines[0]
        time.sleep(0.5)
    """
    return answer(
        first(
            key,
            "while True: print('x' * 1000)",
            "print('x' * 10_000_000)",
            "import sys\nwhile True: print('x' * 1000, file=sys.stderr)",
            "!yes",
            "while True: display('x' * 10_000)",
            threads,
        ),
        attainable_flops=flood,
        predicted_v8="while True: print('x' * 1000)\npredicted_v8 = 1.5",
    )


# --- memory ------------------------------------------------------------------------------------


@case(
    limits={"memory_gib": 2, "restarts": 3},
    lost={"matrix_weights": "used up the kernel's 2 GiB of memory"},
)
def memory_used_up(key):
    """What each leaves of it would not do for the cells behind."""
    return answer(
        first(key, "x = bytearray(64 * 2**30)", "x = []\nwhile True: x.append(bytearray(9999))"),
        matrix_weights="""
        kept = []

        def matrix_weights(shape):
            while True:
                kept.append(bytearray(9999))
        """,
    )


# --- the kernel's end --------------------------------------------------------------------------


@case(
    lost={
        "attainable_flops": "`attainable_flops` did not run to its end. LeftOut: the kernel died",
        "cached_decode": "LeftOut: the kernel died in this cell",
        "naive_decode": "LeftOut: the kernel died in this cell",
        "batch_intensity": "LeftOut: not run: too many cells before it ended the kernel",
        "predicted_v8": "LeftOut: not run: too many cells before it ended the kernel",
        "quiz": "LeftOut: not run: too many cells before it ended the kernel",
    }
)
def kernel_killed_again_and_again(key):
    """In a solution cell, with a process that must not outlive its kernel; in answers, by signals."""
    find(key, "attainable_flops").source += """
import os, pathlib, subprocess
pathlib.Path("child").write_text(str(subprocess.Popen(["sleep", "1000"]).pid))
os._exit(1)
"""
    return answer(
        key,
        cached_decode="import os\ndef cached_decode(*_):\n    os.kill(os.getpid(), 9)",
        naive_decode="import ctypes\ndef naive_decode(*_):\n    ctypes.string_at(0)",
    )


# --- without end -------------------------------------------------------------------------------


@case(
    limits=BRIEFLY,
    lost={
        "matrix_weights_check": "not finished after 1 seconds",
        "matrix_weights_hidden": "OutOfTime: this cell did not finish in the 3 seconds",
        "batch_intensity": "OutOfTime: this cell did not finish in the 3 seconds",
    },
)
def loops(key):
    """In a cell; in an answer; in an answer that prints, and has put off the check's alarm."""
    return answer(
        first(key, "from specdec_lab.checks import harness\nharness.SECONDS = 1", "while True: pass"),
        matrix_weights="def matrix_weights(shape):\n    while True: pass",
        batch_intensity="""
        import signal

        def batch_intensity(*_):
            signal.setitimer(signal.ITIMER_REAL, 0)
            while True:
                print("still here")
        """,
    )


@case(limits=BRIEFLY, lost={"matrix_weights": "LeftOut: this cell ran out of time and could not be"})
def loops_that_cannot_be_interrupted(key):
    """One swallows the interrupt; the other does not return from C to notice it."""
    stubborn = """
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            while True: print("x" * 1000)
        except BaseException:
            pass
    """
    return answer(
        first(key, stubborn),
        matrix_weights="def matrix_weights(shape):\n    return sum(range(10**15))",
    )


@case(
    limits={"seconds_in_all": 10},
    lost={
        "cached_decode": "OutOfTime: the notebook's 10 seconds were used up before",
        "naive_decode": "OutOfTime: the notebook's 10 seconds were used up before",
        "batch_intensity": "OutOfTime: the notebook's 10 seconds were used up before",
        "predicted_v8": "OutOfTime: the notebook's 10 seconds were used up before",
        "quiz": "OutOfTime: the notebook's 10 seconds were used up before",
    },
)
def more_time_than_there_is(key):
    place = key.cells.index(find(key, "cached_decode"))
    key.cells.insert(place, new_code_cell("import time\ntime.sleep(1000)"))
    return key
