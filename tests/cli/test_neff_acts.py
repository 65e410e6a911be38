"""`neurontools neff acts`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.corpus.files import MATMUL_SMALL, find

FUSED = Path("trainium-kernel-fusion") / "profiling" / "fused_attention" / "fused.neff"


def test_functions_of_our_own_files_have_no_table(cli: Cli, root: Path) -> None:
    path = root / "fixtures" / "neff" / "add_exp.neff"
    result = checked_json(cli("neff", "acts", path, "--json"), "neff acts")
    (one,) = result["sets"]
    functions = {row["name"]: row for row in one["functions"]}
    assert functions["exp"]["words"] == 1 and functions["identity"]["words"] == 0
    assert functions["identity"]["reason"] == "the file has no table of it"
    assert "identity: the file has no table of it" in cli("neff", "acts", path).out


def test_a_file_without_tables(cli: Cli, program_file: Path) -> None:
    assert "sg00 uses no activation table" in cli("neff", "acts", program_file).out


def test_bad_files_and_options(cli: Cli, tmp_path: Path, program_file: Path) -> None:
    refuses_bad_files(cli, "neff acts", tmp_path)
    ended = cli("neff", "acts", program_file, "--plot", "exp")
    assert ended.status == 4 and "no activation function 'exp'" in ended.error_line
    assert cli("neff", "acts", program_file, "--range", "3:1").status == 2
    assert cli("neff", "acts", program_file, "--subgraph", "7").status == 4


@pytest.mark.parametrize(("name", "span", "limit"), [("exp", "-40:40", 1.2e-5), ("tanh", "-12:12", 2.7e-7)])
def test_errors_of_public_tables_are_the_published_ones(
    cli: Cli, corpus: Path, name: str, span: str, limit: float
) -> None:
    """formats.md 3.10: exp 1.1e-5 over ±40, tanh 2.7e-7 over ±12, on random numbers."""
    result = checked_json(cli("neff", "acts", find(corpus, MATMUL_SMALL), "--range", span, "--json"), "neff acts")
    row = next(row for row in result["sets"][0]["functions"] if row["name"] == name)
    assert limit / 2 < row["max_relative"] < limit
    assert row["worst_at"] is not None and row["pieces"] > 1


def test_tables_of_simple_functions_are_exact(cli: Cli, corpus: Path) -> None:
    result = checked_json(cli("neff", "acts", find(corpus, MATMUL_SMALL), "--json"), "neff acts")
    found = {row["name"]: row for row in result["sets"][0]["functions"]}
    for name in ("identity", "copy", "relu", "abs", "sign", "memset_zero", "is_finite"):
        assert found[name]["max_absolute"] == 0.0, name
    assert found["square"]["max_ulp"] == 0.5  # one rounding
    assert "not established" in found["parametric_relu"]["reason"]
    assert len(result["known_sets"]) == 21 and sum(one["packed"] for one in result["known_sets"]) == 1


def test_the_plot_is_of_the_largest_errors(cli: Cli, corpus: Path) -> None:
    result = checked_json(
        cli("neff", "acts", find(corpus, MATMUL_SMALL), "-p", "exp", "-r", "-8:8", "--json"), "neff acts"
    )
    curve = result["curve"]
    row = next(row for row in result["sets"][0]["functions"] if row["name"] == "exp")
    assert max(curve["relative"]) == row["max_relative"] and curve["range"] == [-8, 8]
    lines = cli("neff", "acts", find(corpus, MATMUL_SMALL), "-p", "exp", "-r", "-8:8").out.splitlines()
    assert lines[0] == "exp: relative error of the table, -8 to 8"
    assert lines[1].split()[0] == f"{row['max_relative']:.1e}"
    assert lines[1].partition("┤")[2][curve["relative"].index(max(curve["relative"]))] == "█"
    # Errors are smallest around zero, where a table of exp is a line: the middle columns are lower.
    assert min(curve["relative"]) == min(curve["relative"][34:38]) and lines[1].partition("┤")[2][35:37] == "  "
    assert cli("neff", "acts", find(corpus, MATMUL_SMALL), "-p", "abs").out.splitlines()[1] == "exact everywhere"


def test_words_that_use_a_function_are_counted(cli: Cli, corpus: Path) -> None:
    result = checked_json(cli("neff", "acts", find(corpus, FUSED), "--json"), "neff acts")
    used = {row["name"]: row["words"] for row in result["sets"][0]["functions"] if row["words"]}
    assert used["exp"] > 0 and set(used) <= {"exp", "copy", "identity"}
