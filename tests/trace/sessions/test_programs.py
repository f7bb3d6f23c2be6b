"""Whole programs as their authors write them: they must train the same to the bit, and be recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

import tb_gradflow
from tests.trace.sessions.sessions import PROGRAMS, python, run

RUNS = {
    "a3c.py": ["a3c_32"],
    "autoencoder.py": ["autoencoder_31"],
    "batchnorm.py": ["batchnorm_37"],
    "char_rnn.py": ["char_rnn_37"],
    "convnet.py": ["convnet_52"],
    "dqn.py": ["dqn_45"],
    "gan.py": ["gan_41", "gan_42"],
    "monitored.py": ["monitored_26"],
    "queues.py": ["queues_15"],
    "reinforce.py": ["reinforce_21"],
    "towers.py": ["towers_48"],
    "vae.py": ["vae_50"],
    "wgan_gp.py": ["wgan_gp_40", "wgan_gp_43"],
    "word2vec.py": ["word2vec_38"],
}


@pytest.mark.parametrize("name", sorted(path.name for path in PROGRAMS.glob("*.py")))
def test_a_program_trains_the_same_to_the_bit(tmp_path: Path, name: str) -> None:
    """Its losses and weights are printed as hexadecimal numbers, and the sizes of the files that it writes."""
    plain = python(str(PROGRAMS / name), directory=tmp_path / "plain")

    recorded = run("--logdir", "logs", "--update-freq", "2", str(PROGRAMS / name), directory=tmp_path / "recorded")

    assert (plain.returncode, recorded.returncode) == (0, 0), plain.stderr + recorded.stderr
    assert recorded.stdout == plain.stdout != ""
    logs = tmp_path / "recorded" / "logs"
    assert sorted(each.parent.name for each in logs.glob("*/gradflow")) == RUNS[name], recorded.stderr
    for run_name in RUNS[name]:
        log = tb_gradflow.open_log(logs / run_name)
        assert log.steps[:2] == (0, 2), recorded.stderr
        assert log.report().healthy, str(log.report())
        assert "tb_gradflow could not" not in recorded.stderr
