"""Local brokers, load generators, benchmarks and the demo: everything that proves the bridge on real brokers."""
