"""Each experiment's result as tables: for the terminal, a notebook and the report."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean, median

from specdec_lab.bench.batch import EQUALITY
from specdec_lab.bench.compare import OUR_PLAIN
from specdec_lab.bench.dtypes import AGAIN
from specdec_lab.bench.groups import (
    BESIDE_THEORY,
    Group,
    all_in_steps_of,
    beside_theory,
    by_length,
    chosen_apart,
    count_near,
    each_length,
    groups_of,
    in_steps_of,
    over_plain,
    quickest,
    temperatures_and_kinds,
)
from specdec_lab.bench.prediction import Prediction
from specdec_lab.bench.results import Result
from specdec_lab.bench.sweep import OWN_TIME
from specdec_lab.bench.verify import DEAR
from specdec_lab.benchmark import Ratio, paired_ratio
from specdec_lab.sheet import Cell, Sheet, Toned

APART = (
    "Each prompt at the draft length that is best on the other prompts of its kind; a kind's only "
    "prompt at its own best."
)
BEHIND = "Behind the round that reads the prompt, the draft model's reading included."
NO_QUOTIENT = "The last column is the median of each prompt's ratio, not the quotient of two medians."


def origin(result: Result) -> str:
    """One line: what it was measured on, with what, and when."""
    made = result.provenance
    versions = made["versions"]
    threads = f"{made['threads']} thread{'s' if made['threads'] > 1 else ''}"
    dtype = result.settings.get("dtype")
    models = " and ".join(name for name in (made["target"], made["draft_model"]) if name)
    return (
        f"measured: {models}{f' in {dtype}' if dtype else ''} on {made['hardware']}, "
        f"{threads}, torch {versions['torch']}, transformers {versions['transformers']}, "
        f"{made['date'][:10]}"
    )


def decode_sheets(result: Result) -> tuple[Sheet, ...]:
    """Experiment 1."""
    rows = [
        (
            row["key"],
            str(step["context"]),
            f"{1000 * step['seconds']:.1f}",
            f"{1000 * step['seconds_without_cache']:.0f}",
            f"{step['intensity']:.2f}",
            f"{step['bytes_per_second'] / 1e9:.1f}",
            f"{step['share_of_roof']:.0%}",
        )
        for row in result.rows
        for step in row["steps"]
    ]
    notes = [
        f"{row['key']}: this machine read {row['bandwidth'] / 1e9:.1f} GB/s and computed "
        f"{row['peak_flops'] / 1e9:,.0f} GFLOP/s, so it is bound by memory below {row['ridge']:.0f} "
        f"FLOP/byte; {row['share_in_weight_products']:.0%} of the operators' own time went into "
        "products with weights."
        + (
            f" The GPU waited to be told what to do for {row['share_of_launching']:.0%} of it."
            if row.get("share_of_launching") is not None
            else ""
        )
        for row in result.rows
    ]
    columns = ("dtype", "context", "ms", "ms without cache", "FLOP/byte", "GB/s", "of the roof")
    return (Sheet("One decoding step", columns, tuple(rows), (*notes, origin(result))),)


def verify_sheets(result: Result) -> tuple[Sheet, ...]:
    """Experiment 2."""
    lengths = list(result.rows[0]["v"]) if result.rows else []
    rows = tuple(
        (
            n,
            *(
                cell
                for row in result.rows
                for cell in (
                    f"{row['v'][n]:.2f}",
                    f"{row['v_low'][n]:.2f} to {row['v_high'][n]:.2f}",
                )
            ),
        )
        for n in lengths
    )
    notes = [
        f"{row['key']}: v(n) stays above {DEAR} from n = {row['knee']} on."
        if row["knee"]
        else f"{row['key']}: v(n) is not above {DEAR} for good up to n = {lengths[-1]}."
        for row in result.rows
    ]
    columns = ("n", *(name for row in result.rows for name in (f"v(n), {row['key']}", "95 %")))
    about = f"Intervals: over {result.settings['turns']} turns."
    return (
        Sheet(
            "The cost of verifying n tokens, in one-token forwards",
            columns,
            rows,
            (*notes, about, origin(result)),
            (),
        ),
    )


def dtypes_sheets(result: Result) -> tuple[Sheet, ...]:
    """Experiment 8: over the first dtype's plain decoding, and over each one's own."""
    base = result.settings["plain"]
    kinds = temperatures_and_kinds(result)
    found = all_in_steps_of(result, base)

    def over(name: str, other: str) -> Cell:
        if name == other:
            return "-"
        return _toned(paired_ratio([one[other] for one in found], [one[name] for one in found]))

    rows = tuple(
        (name, over(name, base), over(name, f"{name.split(', ')[0]}, plain")) for name in found[0]
    )
    notes = (
        f"Medians over {len(found)} prompts of {len(kinds)} kinds, greedily, each drafter at its "
        f"default draft length. {BEHIND} Intervals: over prompts.",
        f'"{AGAIN}" is the same thing twice: as far as it is from 1, ratios are chance.',
        origin(result),
    )
    columns = ("dtype, drafts", f"over {base}", "over its own plain")
    return (Sheet("Both dtypes in turns", columns, rows, notes),)


def sweep_sheets(result: Result) -> tuple[Sheet, ...]:
    """Experiment 3: the best speedup of each drafter on each kind, and theory beside it."""
    temperatures = list(dict.fromkeys(group.temperature for group in groups_of(result)))
    sheets = (
        *(_speedups(result, temperature) for temperature in temperatures),
        *(_by_length(result, temperature) for temperature in temperatures),
        *(
            _predictions(result, temperature, drafter)
            for drafter in BESIDE_THEORY
            if drafter in result.settings["drafters"]
            for temperature in temperatures
        ),
        _own_time(result),
    )
    return tuple(sheet for sheet in sheets if sheet.rows)


def _own_time(result: Result) -> Sheet:
    row = result.of(key=OWN_TIME)[0]
    rows = tuple(
        (
            mode,
            f"{found['round_ms']:.1f}",
            f"{found['outside_ms']:.2f}",
            f"{found['outside_ms'] / found['round_ms']:.1%}",
        )
        for mode, found in row["modes"].items()
    )
    columns = ("sampling", "ms per round", "ms outside the forwards", "share")
    note = (
        f"A round: {row['gamma']} drafting steps and one verifying forward; outside them: the loop, "
        "the verdicts, the sampling. Top-p sorts the vocabulary for every row of p and of q."
    )
    return Sheet("Our own time", columns, rows, (note, origin(result)))


def _speedups(result: Result, temperature: float) -> Sheet:
    groups = [group for group in groups_of(result) if group.temperature == temperature]
    drafters = tuple(dict.fromkeys(group.drafter for group in groups))
    kinds = tuple(dict.fromkeys(group.kind for group in groups))
    rows = tuple(
        (
            drafter,
            *(
                _best_cell(
                    [group for group in groups if (group.drafter, group.kind) == (drafter, kind)]
                )
                for kind in kinds
            ),
        )
        for drafter in drafters
    )
    return Sheet(
        f"Speed over plain decoding at temperature {temperature:g} (and the draft length)",
        ("drafter", *kinds),
        rows,
        (
            f"Medians over prompts, and the length that is best on all of them. {APART} {BEHIND}",
            *_alone(groups),
            "A drafter with noise drafts anew behind each token that it spoils: look at what it has "
            "accepted. Look-up lengths that no copy reaches are the same run several times.",
            origin(result),
        ),
    )


def _alone(groups: list[Group]) -> list[str]:
    """Which drafters had only one prompt of a kind."""
    names = dict.fromkeys(group.drafter for group in groups if len(group.runs) == 1)
    return [f"Only one prompt of a kind: {', '.join(names)}."] if names else []


def _best_cell(groups: list[Group]) -> Cell:
    if not groups:
        return "-"
    steps = each_length(groups)
    ratio = over_plain(chosen_apart(steps, ""))
    return _toned(ratio, f"{ratio.value:.2f} ({quickest(steps, '')})")


def _by_length(result: Result, temperature: float) -> Sheet:
    """All prompts together, for every draft length."""
    groups = [group for group in groups_of(result) if group.temperature == temperature]
    drafters = tuple(dict.fromkeys(group.drafter for group in groups))
    lengths = tuple(sorted({group.gamma for group in groups}))
    rows = []
    for drafter in drafters:
        found = by_length([group for group in groups if group.drafter == drafter])
        cells = (_toned(found[n].speedup) if n in found else "-" for n in lengths)
        rows.append((drafter, str(len(next(iter(found.values())).runs)), *cells))
    return Sheet(
        f"Speed over the draft length at temperature {temperature:g}, all kinds together",
        ("drafter", "prompts", *map(str, lengths)),
        tuple(rows),
        (f"Medians over prompts, 95 % bootstrap intervals over prompts. {BEHIND}", origin(result)),
    )


def _predictions(result: Result, temperature: float, drafter: str) -> Sheet:
    """Where theory and measurement part, at the drafter's default length."""
    gamma = BESIDE_THEORY[drafter]
    kinds = beside_theory(result, temperature, drafter)
    rows: list[tuple[Cell, ...]] = []
    for group in kinds:
        known = group.predictions
        rows.append(
            (
                group.kind,
                f"{mean(group.alphas):.2f}",
                f"{median(one.speedup for one in known):.2f}",
                f"{median(one.speedup_measured for one in known):.2f}",
                f"{100 * (group.miss - 1):+.0f} %",
                *(_beside(known, part) for part in ("tokens", "draft", "verify")),
                f"{100 * median(group.rest_shares):.1f} %",
            )
        )
    notes = [
        "Predicted from the run's own alpha and draft lengths, and from c and v timed apart behind 128 "
        "tokens.",
        "tokens, draft, verify: of a round, measured / predicted, times in plain steps; rest: share of "
        "the time outside proposing and verifying. Medians over the prompts on which a drafted token "
        "was judged (alpha: the mean), so a row's columns need not multiply up.",
    ]
    if kinds:
        miss = f"{100 * (mean(group.miss for group in kinds) - 1):+.0f} %"
        notes.insert(
            0,
            f"Measured {miss} from predicted, on average over kinds; within 10 % on "
            f"{count_near(kinds)} of {len(kinds)} kinds.",
        )
    columns = ("kind", "alpha", "predicted", "measured", "miss", "tokens", "draft", "verify", "rest")
    title = f"Theory beside measurement: {drafter}, gamma {gamma}, temperature {temperature:g}"
    return Sheet(title, columns, tuple(rows), (*notes, origin(result)))


def _beside(known: list[Prediction], part: str) -> str:
    """Measured / predicted, of one part of a round."""
    measured = median(getattr(one, f"{part}_measured") for one in known)
    return f"{measured:.2f} / {median(getattr(one, part) for one in known):.2f}"


def slower_sheets(result: Result) -> tuple[Sheet, ...]:
    """Experiment 4."""
    rows = tuple(
        (
            row["key"],
            str(row["gamma"]),
            f"{row['alpha']:.2f}",
            f"{row['c']:.2f}",
            f"{row['v']:.2f}",
            f"{row['predicted']:.2f}",
            _toned(Ratio(row["speedup"], row["speedup_low"], row["speedup_high"])),
            row["because"] or "-",
        )
        for row in result.rows
    )
    columns = ("case", "gamma", "alpha", "c", "v", "predicted", "measured", "to blame")
    note = (
        "alpha from other prompts, c and v timed apart, all before the run: the prediction was made "
        "without seeing what it predicts. To blame: the number that, put back to that of the usual "
        "case, would raise the prediction the most. Intervals: over prompts; of the batch, over turns "
        "of the same prompts; one that holds 1 shows neither gain nor loss."
    )
    what = "; ".join(f"{row['key']}: {row['what']}" for row in result.rows)
    return (Sheet("When it is slower", columns, rows, (f"{what}.", note, origin(result)), (0, 7)),)


def batch_sheets(result: Result) -> tuple[Sheet, ...]:
    """Experiment 5."""
    rows = tuple(
        (
            str(row["size"]),
            f"{row['plain_tokens_per_second']:.0f}",
            str(run["gamma"]),
            _toned(Ratio(run["speedup"], run["speedup_low"], run["speedup_high"])),
            f"{run['tokens_per_round']:.2f}",
            f"{row['v'][str(run['gamma'] + 1)]:.2f}",
        )
        for row in result.rows
        for run in row.get("runs", ())
    )
    columns = ("rows", "plain tokens/s", "gamma", "speedup", "tokens per round", "v(gamma + 1)")
    note = (
        f"Drafter: {result.settings['drafter']}. While all sequences are there; v: of a forward over "
        "the whole batch. Intervals: over batches and repeats of them; the largest batch is the same "
        "prompts each time."
    )
    return (Sheet("Batches", columns, rows, (note, *_equality(result), origin(result)), ()),)


def _equality(result: Result) -> list[str]:
    notes = []
    for row in result.of(key=EQUALITY):
        ties, size = row["near_ties"], row["sequences"]
        gaps = "".join(f"; one differs at a gap of {tie['gap']:.1g} between two logits" for tie in ties)
        notes.append(
            f"In float32, {size - len(ties)} of {size} sequences of a batch are token for token what "
            f"each is alone ({row['tokens']} tokens, gamma 2){gaps}."
        )
    return notes


def adaptive_sheets(result: Result) -> tuple[Sheet, ...]:
    """Experiment 6."""
    rows: list[tuple[Cell, ...]] = []
    for temperature, kind in temperatures_and_kinds(result):
        found = in_steps_of(result, temperature, kind, "plain")
        others = [name for name in found[0] if name != "plain"]
        ratios = [over_plain([steps[name] for steps in found]) for name in others]
        off = mean(row["off"] for row in result.of(temperature=temperature, prompt_kind=kind))
        rows.append((f"{temperature:g}", kind, *map(_toned, ratios), f"{off:.0%}"))
    names = tuple(others)
    columns = ("T", "kind", *names, "off")
    notes = (
        f"Speed over plain decoding, medians over prompts. {BEHIND}",
        "n-gram, adaptive: AdaptiveGamma; draft model, adaptive: the same, and a draft ends where the "
        f"draft model is unsure (below {result.settings['unsure']}). off: rounds in which {others[-1]} "
        "drafted nothing.",
        origin(result),
    )
    return (Sheet("Adaptive draft length", columns, tuple(rows), notes, (0, 1)),)


def compare_sheets(result: Result) -> tuple[Sheet, ...]:
    """Experiment 7: over our plain decoding, and over each other."""
    rows: list[tuple[Cell, ...]] = []
    for temperature, kind in temperatures_and_kinds(result):
        found = in_steps_of(result, temperature, kind, OUR_PLAIN)
        for way in ("plain", "draft model", "n-gram"):
            names = [quickest(found, f"{who}, {way}") for who in ("ours", "theirs")]
            if None in names:
                continue
            ours, theirs = (chosen_apart(found, f"{who}, {way}") for who in ("ours", "theirs"))
            rows.append(
                (
                    f"{temperature:g}",
                    kind,
                    way,
                    _length_of(str(names[0]), over_plain(ours)),
                    _length_of(str(names[1]), over_plain(theirs)),
                    _toned(paired_ratio(theirs, ours)),
                )
            )
    return (
        Sheet(
            "Beside transformers' generate: speed over our plain decoding (and the draft length)",
            ("T", "kind", "drafts", "ours", "theirs", "ours over theirs"),
            tuple(rows),
            (f"Behind the first token. Medians over prompts. {APART} {NO_QUOTIENT}", origin(result)),
            text_columns=(0, 1, 2),
        ),
    )


def _length_of(name: str, ratio: Ratio) -> str:
    parts = name.split(", ")
    return f"{ratio.value:.2f} ({parts[2]})" if len(parts) > 2 else f"{ratio.value:.2f}"


def _toned(ratio: Ratio, text: str | None = None) -> Toned:
    """Green if the whole interval is above 1, red if it is below, neither if it holds 1."""
    if ratio.low is None or ratio.high is None:
        return Toned(text or str(ratio))
    tone = "good" if ratio.low > 1.0 else "bad" if ratio.high < 1.0 else "plain"
    return Toned(text or str(ratio), tone)  # type: ignore[arg-type]


SHEETS: dict[str, Callable[[Result], tuple[Sheet, ...]]] = {
    "decode": decode_sheets,
    "verify": verify_sheets,
    "dtypes": dtypes_sheets,
    "sweep": sweep_sheets,
    "slower": slower_sheets,
    "batch": batch_sheets,
    "adaptive": adaptive_sheets,
    "compare": compare_sheets,
}
