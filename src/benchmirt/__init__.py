"""What language-model benchmarks really measure."""
