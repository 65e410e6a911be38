"""`neurontools neff features`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.corpus.files import MATMUL_SMALL, find


def test_features_say_how_names_are_known(cli: Cli, corpus: Path) -> None:
    result = checked_json(cli("neff", "features", find(corpus, MATMUL_SMALL), "--json"), "neff features")
    assert {one["bit"]: one["provenance"] for one in result["bits"]} == {
        10: "inferred", 11: "inferred", 12: "observed", 15: "observed", 21: "observed",
    }  # fmt: skip
    assert result["subgraphs"] == {"sg00": ["neff_feature_vnc"], "sg01": ["neff_feature_vnc"]}


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff features", tmp_path)
