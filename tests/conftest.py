"""What all suites share: one Spark session, and how hard Hypothesis tries."""

import os

import pytest
from hypothesis import HealthCheck, settings

# The shipped suites explain their failures like tests do.
pytest.register_assert_rewrite("windrow.testing")

# A loaded machine is slow, not wrong.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=50, **_PATIENT)
settings.register_profile("ci", max_examples=100, derandomize=True, **_PATIENT)
settings.register_profile("long", max_examples=5000, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """The one session; tests that use it carry the marks `spark` and `xdist_group("spark")`."""
    from windrow.runners.session import spark_session

    session = spark_session("local[2]", log=tmp_path_factory.mktemp("spark") / "spark.log")
    yield session
    session.stop()
