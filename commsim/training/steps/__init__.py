"""Steps of training from a configuration: shapes, roofline, traffic, pipeline."""
