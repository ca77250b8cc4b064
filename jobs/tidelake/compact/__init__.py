"""The compact stage: folds changelogs into snapshot tables."""
