"""Who executes the work of a pipeline: this process, or Spark."""
