"""The README's moving picture: the stream player on a real run, filmed in headless Chromium.

python -m docs.film
"""

from __future__ import annotations

import io
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from specdec_lab.bench.prompts import CONVERSATION
from specdec_lab.pretrained import load_pair
from specdec_lab.widgets import watch
from specdec_lab.widgets.workbench import Workbench

HERE = Path(__file__).parent
SIZE = {"width": 900, "height": 585}
COLOURS = 64
MILLISECONDS, LAST = 900, 3500
"""How long a round is shown, and the last one."""


def main() -> None:
    """Decode, step through the rounds, and save ``player.gif``."""
    # The prompt and the dtype of the committed results, the default draft length, the first seed.
    pair = load_pair("embedded", dtype="bfloat16")
    bench = watch(pair, CONVERSATION[0], temperature=0.7, seed=0, max_new_tokens=40)
    assert isinstance(bench, Workbench)
    page = f'<meta charset="utf-8"><body style="margin:14px">{bench.player._repr_html_()}</body>'
    frames = _one_palette(film(page, len(bench.generation.rounds)))
    durations = [MILLISECONDS] * (len(frames) - 1) + [LAST]
    frames[0].save(
        HERE / "player.gif",
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        optimize=True,
    )


def film(html: str, rounds: int) -> list[Image.Image]:
    """One picture for each round, and one for the start."""
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
        page.set_content(html)
        page.get_by_role("button", name="to the start (Home)").click()
        page.mouse.move(0, 0)
        frames = [_picture(page)]
        for _ in range(rounds):
            page.get_by_role("button", name="one round on (→)").click()
            page.mouse.move(0, 0)
            frames.append(_picture(page))
        browser.close()
    return frames


def _picture(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def _one_palette(frames: list[Image.Image]) -> list[Image.Image]:
    """All frames in the same few colours: smaller than each in its own, and nothing flickers."""
    width, height = frames[0].size
    sheet = Image.new("RGB", (width, height * len(frames)))
    for place, frame in enumerate(frames):
        sheet.paste(frame, (0, place * height))
    palette = sheet.quantize(COLOURS, dither=Image.Dither.NONE)
    return [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]


if __name__ == "__main__":
    main()
