"""The README's moving picture: the stream player on a real run, filmed in headless Chromium.

python -m docs.film
"""

from __future__ import annotations

import io
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from specdec_lab.pretrained import load_pair
from specdec_lab.widgets import watch
from specdec_lab.widgets.workbench import Workbench

HERE = Path(__file__).parent
PROMPT = "Why do cats bring dead mice into the house?"
SIZE = {"width": 900, "height": 585}
MILLISECONDS, LAST = 900, 3500
"""How long a round is shown, and the last one."""


def main() -> None:
    """Decode, step through the rounds, and save ``player.gif``."""
    bench = watch(load_pair("embedded"), PROMPT, gamma=4, temperature=0.7, seed=4, max_new_tokens=32)
    assert isinstance(bench, Workbench)
    page = f'<meta charset="utf-8"><body style="margin:14px">{bench.player._repr_html_()}</body>'
    frames = film(page, len(bench.generation.rounds))
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
            page.keyboard.press("ArrowRight")
            frames.append(_picture(page))
        browser.close()
    return frames


def _picture(page: Page) -> Image.Image:
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return picture.quantize(48, dither=Image.Dither.NONE)


if __name__ == "__main__":
    main()
