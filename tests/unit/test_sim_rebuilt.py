"""How often a what-if is built anew can't be told by what comes of a play."""

from pathlib import Path

import pytest

from reconciler.fleet.books import crowding
from reconciler.fleet.what_if import WhatIf
from reconciler.model.cluster.observed import Observed
from reconciler.simulate.playing.staging import Watched, run
from tests.benchmarks.simulating.story import Size, play_of


def test_a_play_is_the_same_however_often_the_what_if_is_built_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play, built, build = play_of(Size(40, 400, 1), tmp_path), [], WhatIf.__init__

    def counted(what_if: WhatIf, observed: Observed) -> None:
        built.append(observed)
        build(what_if, observed)

    monkeypatch.setattr(WhatIf, "__init__", counted)
    unjudged = Watched(is_judged=False)
    seldom, first = run(play, unjudged), len(built)
    for name, figure in (("_LEAST_BYTES", 2_000), ("_LEAST_BYTES_A_ROW", 0), ("_TIMES", 1.2)):
        monkeypatch.setattr(crowding, name, figure)
    assert run(play, unjudged) == seldom
    assert len(built) - first > first + 10, "or this would show nothing"
