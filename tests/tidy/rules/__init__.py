"""The rules of thumb: every one is a function from a tree to the places that break it."""

from collections.abc import Callable

from tests.tidy.finding import Finding
from tests.tidy.rules.budgets import every_test_has_a_budget
from tests.tidy.rules.dead_files import (
    modules_of_the_product_are_imported,
    modules_of_the_tests_are_used,
    other_files_are_named_somewhere,
)
from tests.tidy.rules.determinism import (
    pure_folders_keep_no_hash,
    sets_are_sorted_before_they_are_walked,
    thresholds_are_integers,
)
from tests.tidy.rules.documents import links_lead_somewhere, make_targets_in_documents_exist, paths_in_documents_exist
from tests.tidy.rules.entry_points import (
    continuous_integration_runs_the_tests,
    make_check_looks_at_the_tree,
    phony_targets_exist,
)
from tests.tidy.rules.layers import (
    every_folder_has_a_place,
    imports_keep_their_contracts,
    planners_do_not_know_one_another,
    pure_folders_are_under_contract,
)
from tests.tidy.rules.leftovers import checks_are_silenced_by_name, nothing_is_left_for_later, nothing_stops_a_run
from tests.tidy.rules.lengths import (
    files_are_short,
    folders_are_small,
    functions_are_short,
    functions_take_few_parameters,
)
from tests.tidy.rules.machine_paths import no_file_names_a_machine
from tests.tidy.rules.mirror import unit_tests_mirror_the_package
from tests.tidy.rules.names import names_say_what_a_thing_is
from tests.tidy.rules.openings import modules_open_with_a_sentence
from tests.tidy.rules.purity import (
    pure_folders_import_nothing_of_the_world,
    pure_folders_reach_for_nothing_of_the_world,
)
from tests.tidy.rules.ratchet import long_functions_only_shrink
from tests.tidy.rules.reasons import programs_read_facts_and_no_prose
from tests.tidy.tree import Tree

Rule = Callable[[Tree], list[Finding]]

RULES: tuple[Rule, ...] = (
    pure_folders_import_nothing_of_the_world,
    pure_folders_reach_for_nothing_of_the_world,
    sets_are_sorted_before_they_are_walked,
    pure_folders_keep_no_hash,
    thresholds_are_integers,
    files_are_short,
    functions_are_short,
    functions_take_few_parameters,
    folders_are_small,
    long_functions_only_shrink,
    modules_open_with_a_sentence,
    names_say_what_a_thing_is,
    nothing_is_left_for_later,
    checks_are_silenced_by_name,
    nothing_stops_a_run,
    modules_of_the_product_are_imported,
    modules_of_the_tests_are_used,
    other_files_are_named_somewhere,
    links_lead_somewhere,
    paths_in_documents_exist,
    make_targets_in_documents_exist,
    no_file_names_a_machine,
    imports_keep_their_contracts,
    every_folder_has_a_place,
    pure_folders_are_under_contract,
    planners_do_not_know_one_another,
    every_test_has_a_budget,
    unit_tests_mirror_the_package,
    continuous_integration_runs_the_tests,
    phony_targets_exist,
    make_check_looks_at_the_tree,
    programs_read_facts_and_no_prose,
)
