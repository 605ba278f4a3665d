"""The course's commands: ``specdec-lab build | start | grade | grade-class | release | mutants``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lab.course.folder import Course, CourseError, find_course

if TYPE_CHECKING:
    from rich.status import Status

    from specdec_lab.course.grade import Report
    from specdec_lab.parsing import Commands


def add_commands(commands: Commands) -> None:
    """Add the course's commands to the command line."""
    start = commands.add_parser("start", help="make your working copy of the notebooks in work/")
    start.set_defaults(run=run_start)
    _name(start, "all of them")
    start.add_argument("--fresh", action="store_true", help="begin anew; the old copy is kept aside")
    grade = commands.add_parser("grade", help="grade your working copy (about half a minute each)")
    grade.set_defaults(run=run_grade)
    _name(grade, "every one that was started")
    build = commands.add_parser("build", help="make notebooks and answer keys from solutions/*/*.py")
    build.set_defaults(run=run_build)
    _name(build, "all of them")
    build.add_argument("--check", action="store_true", help="change nothing; fail if out of step")
    build.add_argument("--no-execute", action="store_true", help="do not run the answer keys (minutes)")
    release = commands.add_parser("release", help="register in the gradebook; write the learners' zip")
    release.set_defaults(run=run_release)
    release.add_argument("--zip", type=Path, metavar="FILE", help="(dist/specdec-lab-course-*.zip)")
    classes = commands.add_parser("grade-class", help="autograde everything in submitted/; write a CSV")
    classes.set_defaults(run=run_grade_class)
    _name(classes, "all of them")
    classes.add_argument("--again", action="store_true", help="also what has not changed since")
    classes.add_argument("--csv", type=Path, metavar="FILE", help="(grades.csv)")
    mutants = commands.add_parser("mutants", help="try the checks on wrong and right implementations")
    mutants.set_defaults(run=run_mutants)
    _name(mutants, "all of them")


def _name(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"name or number ({default})")


def run_start(options: argparse.Namespace) -> int:
    """Make working copies; say where they are."""
    from specdec_lab.course.start import start

    course = find_course()
    for name in course.choose(options.name, course.released()):
        started = start(course, name, fresh=options.fresh)
        where = started.file.relative_to(course.root)
        if started.kept_aside is not None:
            print(f"kept aside  {started.kept_aside.relative_to(course.root)}")
        print(f"{'new        ' if started.new else 'kept as is '} {where}")
    return 0


def run_grade(options: argparse.Namespace) -> int:
    """Grade working copies; 0 if everything was gradable, whatever the marks."""
    from specdec_lab.course.grade import grade_working_copy

    course = find_course()
    started = [name for name in course.released() if (course.work / name).is_dir()]
    if options.name is None and not started:
        raise CourseError("nothing in work/ to grade; begin with: specdec-lab start")
    names = course.choose(options.name, course.released() if options.name else started)
    problem = False
    for name in names:
        before = time.monotonic()
        with _spinner(f"grading {name} (usually under a minute)"):
            report = grade_working_copy(course, name)
        _print_report(course, report, time.monotonic() - before)
        problem = problem or bool(report.problem)
    return int(problem)


def _spinner(what: str) -> Status:
    from rich.console import Console

    return Console(stderr=True).status(what)


def _print_report(course: Course, report: Report, seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if report.problem:
        console.print(f"\n{report.assignment}: cannot be graded: {report.problem}", markup=False)
        return
    if not report.items:
        console.print(f"\n{report.assignment}: nothing in it is graded.", markup=False)
        return
    table = Table("exercise", "points", "of", title=report.assignment, title_justify="left")
    for item in report.items:
        kind = " (bonus)" if item.bonus else " (other inputs)" if item.hidden else ""
        points = "a person reads it" if item.points is None else f"{item.points:g}"
        table.add_row(item.exercise + kind, points, f"{item.worth:g}")
    table.add_section()
    bonus = f" + {report.bonus:g} bonus" if report.bonus else ""
    table.add_row("together", f"{report.points:g}{bonus}", f"{report.worth:g}")
    console.print()
    console.print(table)
    seen: set[str] = set()
    for item in report.items:
        if item.message and item.message not in seen:
            seen.add(item.message)
            console.print(f"\n{item.message}", markup=False, highlight=False, soft_wrap=True)
    console.print()
    if report.to_read:
        print(f"{report.to_read:g} more points are for answers that a person reads.")
    if not report.hidden_checks:
        print("Without the instructor's files only the visible checks could be graded.")
    if report.feedback is not None:
        print(f"The graded notebook: {_short(course, report.feedback)} ({seconds:.0f} s)")


def _short(course: Course, path: Path) -> Path:
    return path.relative_to(course.root) if path.is_relative_to(course.root) else path


def run_build(options: argparse.Namespace) -> int:
    """Build, or check that nothing needs building."""
    from specdec_lab.course.build import build, out_of_step

    course = find_course()
    course.require_solutions()
    names = course.choose(options.name, course.written())
    if options.check:
        stale = [problem for name in names for problem in out_of_step(course, name)]
        for problem in stale:
            print(f"out of step: {problem}")
        print("run: specdec-lab build" if stale else f"{len(names)} notebooks are in step")
        return int(bool(stale))
    for name in names:
        before = time.monotonic()
        execute = not options.no_execute
        what = f"building {name}" + (", answer key run from top to bottom" if execute else "")
        with _spinner(what):
            changed = build(course, name, execute=execute)
        files = ", ".join(str(_short(course, file)) for file in changed) or "nothing changed"
        print(f"{name} ({time.monotonic() - before:.0f} s): {files}")
    return 0


def run_release(options: argparse.Namespace) -> int:
    """Put every assignment into the gradebook and write the archive for learners."""
    from specdec_lab.course.build import call, must_succeed, nbgrader_api, out_of_step
    from specdec_lab.course.release import archive

    course = find_course()
    course.require_solutions()
    stale = [problem for name in course.written() for problem in out_of_step(course, name)]
    if stale:
        raise CourseError(f"out of step: {', '.join(stale)}; run: specdec-lab build")
    api = nbgrader_api(course)
    for name in course.written():
        must_succeed(call(api.generate_assignment, name), f"cannot release {name}")
        print(f"in the gradebook: {name}")
    print(f"for learners: {_short(course, archive(course, options.zip))}")
    return 0


def run_grade_class(options: argparse.Namespace) -> int:
    """Autograde all submissions; one line each, and a CSV with everybody's marks."""
    from rich.console import Console
    from rich.table import Table

    from specdec_lab.course.grade import export_grades, grade_class

    course = find_course()
    names = course.choose(options.name, course.written())
    table = Table("student", "assignment", "points", "of", "to read", "remarks")
    table.columns[1].no_wrap = True
    problems = 0
    console = Console()
    with Console(stderr=True).status("grading (up to a minute for each submission)") as status:
        for report in grade_class(course, names, again=options.again):
            status.update(f"graded {report.assignment} of {report.student}")
            problems += bool(report.problem)
            bonus = f" + {report.bonus:g}" if report.bonus else ""
            numbers = [f"{report.points:g}{bonus}", f"{report.worth:g}", f"{report.to_read:g}"]
            table.add_row(
                report.student,
                report.assignment,
                *(["0", "", ""] if report.problem else numbers),
                report.problem or remarks(report),
            )
    console.print(table)
    file = options.csv or course.root / "grades.csv"
    students = export_grades(course, file)
    print(f"{students} students in {_short(course, file)}")
    if problems:
        print(f"could not be graded, and count as 0 until someone looks at them: {problems}")
    return int(bool(problems))


def remarks(report: Report) -> str:
    """What a grader should know of a submission: cells that did not run as they should."""
    words = ("LeftOut", "OutOfTime", "OutputFlood")
    found = [word for word in words if any(item.message.startswith(word) for item in report.items)]
    return ", ".join(found)


def run_mutants(options: argparse.Namespace) -> int:
    """Print the kill table; 1 if a wrong implementation passes or a right one fails."""
    from rich.console import Console

    from specdec_lab.course.mutants import judge_all, mutants_table

    course = find_course()
    judged = judge_all(course, course.choose(options.name, course.written()))
    if not judged:
        raise CourseError(f"no mutants in {course.root / 'tests' / 'mutants'}")
    Console().print(mutants_table(judged))
    return int(any(not one.as_it_should for one in judged))
