"""The recipe of `drive`: simulator, data, stages of training, and how good what came out is."""
