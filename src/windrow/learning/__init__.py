"""Learning while queries run: what a scan fetched is looked at once more after it, by a thread with a budget."""

from windrow.model.learning_settings import LearningSettings

__all__ = ["LearningSettings"]
