"""Collect: every source becomes the same outcome table.

in    the files that the configuration names, or nothing where a source is simulated
out   <results>/outcomes/{source}/: shard0.parquet (model, question_id, outcome, reason, ...), one manifest per model,
      and the source's items and models
steps simulate  writes a source of kind `simulated` as the tables that a user would have, and its truth elsewhere
      collect   reads one source strictly and says for each missing outcome why it is missing
"""


rule simulate:
    output:
        responses="<results>/sources/{source}/simulated_responses.csv.gz",
        item_table="<results>/sources/{source}/simulated_items.csv",
        model_table="<results>/sources/{source}/simulated_models.csv",
        truth=multiext(
            "<results>/truth/{source}/simulated_truth",
            ".json",
            "_models.csv",
            "_items.csv",
            "_correlations.csv",
            "_probabilities.npy",
        ),
    log:
        "<logs>/simulate/{source}.log",
    benchmark:
        "<benchmarks>/simulate/{source}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(500),
    params:
        options=lambda w: STUDY.source(w.source).options,
        fingerprint=code_of("simulate"),
    script:
        "../../scripts/simulate.py"


rule collect:
    input:
        lambda w: list(STUDY.source(w.source).files("<results>").values()),
    output:
        shard="<results>/outcomes/{source}/shard0.parquet",
        manifests="<results>/outcomes/{source}/shard0.manifests.json",
        item_table="<results>/outcomes/{source}/items.parquet",
        model_table="<results>/outcomes/{source}/models.parquet",
    log:
        "<logs>/collect/{source}.log",
    benchmark:
        "<benchmarks>/collect/{source}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
    params:
        options=lambda w: STUDY.source(w.source).options,
        fingerprint=code_of("collect"),
    script:
        "../../scripts/collect.py"
