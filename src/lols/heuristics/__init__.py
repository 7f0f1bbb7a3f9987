"""From a heuristic and a cost to a policy that does better: `lols.optimise`."""
