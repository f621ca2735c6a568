"""Settings for the registry's tasks: of experts, and of policies under a learned rule."""

import pytest

import tacit
from tacit.control.presets import EXPERTS, PRESETS, expert_preset, preset
from tacit.control.settings import PPO


@pytest.mark.parametrize("name", sorted(EXPERTS))
def test_settings_of_experts_alone_leave_those_of_policies_under_a_learned_rule(name):
    task = tacit.make(name)
    assert expert_preset(task) == EXPERTS[name] != PRESETS[name] == preset(task)


@pytest.mark.parametrize("name", sorted(PRESETS.keys() - EXPERTS.keys()))
def test_experts_without_settings_of_their_own_use_those_of_the_task(name):
    task = tacit.make(name)
    assert expert_preset(task) == preset(task) == PRESETS[name]


def test_an_expert_swimmer_is_charged_once_and_looks_over_the_whole_episode():
    task = tacit.make("BlockedSwimmer")
    settings = expert_preset(task)
    assert settings.charge_once
    assert 1 / (1 - settings.cost_discount) >= task.horizon
    assert settings.multiplier.kind == "penalty"


def test_a_task_without_settings_of_its_own_has_the_defaults():
    unknown = tacit.make("CartPole-v1", cost=lambda seen, action, arrived: 0.0)
    assert expert_preset(unknown) == preset(unknown) == PPO()
