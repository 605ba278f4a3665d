"""The README's pictures, drawn as SVG from runs made now, and the page of views, executed now.

python -m docs.capture
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
from rich.console import Console
from rich.text import Text

from specdec_lab import plots
from specdec_lab.audit import audit_gallery
from specdec_lab.course.build import build_page
from specdec_lab.demo import run_demo
from specdec_lab.pretrained import load_pair
from specdec_lab.terminal import RoundPrinter, demo_table
from specdec_lab.text import decoder

HERE = Path(__file__).parent
PROMPT = (
    "Repeat word for word: The river rises in the hills. In spring it floods the meadows, and the "
    "farmers move their sheep to higher ground. In summer children swim below the bridge."
)


def main() -> None:
    """Draw both, and run the page."""
    draw_demo()
    draw_gallery()
    run_views()


def run_views() -> None:
    """Execute ``views.py`` as a notebook."""
    nbformat.write(build_page(HERE / "views.py"), HERE / "views.ipynb")


def draw_gallery() -> None:
    """Audit the gallery, and save the picture of its errors."""
    # Without these two, the file would change with each run.
    plt.rcParams["svg.hashsalt"] = "gallery"
    figure = plots.gallery(audit_gallery())
    figure.savefig(HERE / "gallery.svg", bbox_inches="tight", metadata={"Date": None})


def draw_demo() -> None:
    """Run the demo on a prompt that repeats itself, and save the terminal's picture."""
    console = Console(record=True, width=92, file=io.StringIO(), force_terminal=True)
    command = f'specdec-lab demo --drafter ngram --chat --prompt "{PROMPT}"'
    console.print(f"[bold]$[/] {command}\n", highlight=False)
    pair = load_pair("embedded")
    printer = RoundPrinter(console, decoder(pair.tokenizer))
    console.print(printer.legend())
    console.print()
    demo = run_demo(pair, PROMPT, drafter=pair.drafter("ngram"), chat=True)
    console.print(Text().join(map(printer.marked_text, demo.speculative.rounds)), "\n")
    console.print(demo_table(demo))
    drawing = console.export_svg(title="specdec-lab demo")
    # The fonts are named with addresses to fetch them from; a picture should not need a network.
    drawing = re.sub(r"@font-face \{.*?\}", "", drawing, flags=re.DOTALL)
    (HERE / "demo.svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
