"""The paper's two studies: data, splits, runner, results, tables, figures."""
