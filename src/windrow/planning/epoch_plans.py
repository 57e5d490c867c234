"""Plans of files of several schema epochs: each epoch is planned by itself, and what is read of it is marked with it.

In files of an earlier epoch a column may have values of another type than the table has now. What is demanded of such a
column is asked of the metadata of these files where there is a test of the stored values for it. Else it is left out of
their plans, and engines ask the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from windrow.model.epochs import OldColumns, stored_predicate
from windrow.model.rows import Rows
from windrow.planning.data_files import DataFile
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import ScanPlan, plan_files, summed
from windrow.planning.synopses import summed_uses
from windrow.questions.naming import Question
from windrow.sidecar.pruning import Step

__all__ = ["asked_of", "epochs_planned", "joined_plans"]


def asked_of(question: Question, epoch: int, old: OldColumns) -> Question:
    """Return what can be asked of the metadata of files of an epoch."""
    predicate = stored_predicate(question.predicate, old.get(epoch, {}))
    return question if predicate is question.predicate else replace(question, predicate=predicate)


def epochs_planned(
    context: ScanContext,
    files: Sequence[DataFile],
    question: Question,
    *,
    share: tuple[int, int] = (0, 1),
) -> ScanPlan:
    """Plan a scan of some files of any epochs, as `plan_files` would plan it."""
    by_epoch: dict[int, list[DataFile]] = {}
    for file in files:
        by_epoch.setdefault(file.epoch, []).append(file)
    plans = {}
    for epoch, some in by_epoch.items():
        asked = asked_of(question, epoch, context.old)
        plans[epoch] = plan_files(context, some, predicate=asked.predicate, columns=asked.columns, share=share)
    return joined_plans(plans, context.old)


def joined_plans(plans: Mapping[int, ScanPlan], old: OldColumns, steps: Iterable[Step] = ()) -> ScanPlan:
    """Return the plans of several epochs as one; `steps` are those that led to them."""
    virtual = [
        replace(each, epoch=epoch) if old.get(epoch) else each for epoch, plan in plans.items() for each in plan.virtual
    ]
    taken = [*steps, *(step for plan in plans.values() for step in plan.steps)]
    uses = summed_uses(use for plan in plans.values() for use in plan.statistics)
    return ScanPlan(virtual, Rows(Step, tuple(summed(taken))), statistics=uses)
