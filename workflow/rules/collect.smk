"""Collect: every source becomes the same outcome table.

in    the files that the configuration names, data sets of the hub, or nothing where a source is simulated
out   <results>/outcomes/{source}/, or a folder in it for each job of a source of raw files: shards (model, question_id,
      outcome, reason, ...), one manifest per model, and the source's items and models
steps fetch           brings what the configuration names of the hub into <results>/fetched/{source}/, on the machine
                      that runs the workflow, since compute nodes often have no network; the first asks about all of it
      simulate        writes a source of kind `simulated` as the tables that a user would have, and its truth elsewhere
      simulate_raw    writes the raw files of the simulated double, a folder per model, in the upstream formats
      simulate_truth  writes what was planted in them; a rule of its own, so that nothing depends on it
      collect         reads one table, or files that name their models, strictly, and says for each missing outcome why
                      it is missing
      collect_*       the same of a folder per model: a job for about 50 models, a shard for each (or for a job,
                      beyond 100)
"""


rule fetch:
    output:
        folder=directory("<results>/fetched/{source}/{role}"),
        record="<results>/fetched/{source}/{role}.json",
    log:
        "<logs>/fetch/{source}.{role}.log",
    benchmark:
        "<benchmarks>/fetch/{source}.{role}.tsv"
    wildcard_constraints:
        source=one_of(sorted({name for name, _ in FETCHED})),
        role=f"{one_of(studies.PLACES)}|folder/[^/]+",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(500),
        downloads=1,
    params:
        data_set=lambda w: FETCHED[w.source, w.role],
        every=lambda w, input: EVERY_DATA_SET,  # handed the input, it is no reason to fetch again when it changes
        fingerprint=code_of("fetch"),
    script:
        "../../scripts/fetch.py"


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
    wildcard_constraints:
        source=one_of(sources_of("simulated")),
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


rule simulate_raw:
    output:
        directory("<results>/sources/{folder}"),
    log:
        "<logs>/simulate_raw/{folder}.log",
    benchmark:
        "<benchmarks>/simulate_raw/{folder}.tsv"
    wildcard_constraints:
        folder=one_of(studies.RAW.values()),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1500),
    params:
        twin=STUDY.simulate,
        fingerprint=code_of("simulate_raw"),
    script:
        "../../scripts/simulate_raw.py"


rule simulate_truth:
    output:
        multiext(
            "<results>/truth/twin/simulated_truth",
            ".json",
            "_models.csv",
            "_items.csv",
            "_correlations.csv",
            "_failures.csv",
            "_honest.parquet",
            "_published.parquet",
            "_probabilities.npy",
        ),
    log:
        "<logs>/simulate_truth.log",
    benchmark:
        "<benchmarks>/simulate_truth.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1500),
    params:
        twin=STUDY.simulate,
        fingerprint=code_of("simulate_truth"),
    script:
        "../../scripts/simulate_truth.py"


rule collect:
    input:
        lambda w: PLANS[w.source][0].inputs,
    output:
        shard="<results>/outcomes/{source}/shard0.parquet",
        manifests="<results>/outcomes/{source}/shard0.manifests.json",
        item_table="<results>/outcomes/{source}/items.parquet",
        model_table="<results>/outcomes/{source}/models.parquet",
    log:
        "<logs>/collect/{source}.log",
    benchmark:
        "<benchmarks>/collect/{source}.tsv"
    wildcard_constraints:
        source=one_of(source for source, batches in PLANS.items() if not batches[0].name),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
    params:
        source=lambda w: w.source,
        batch="",
        models=lambda w: chosen_models(w.source),
        repeated_rows=STUDY.joining["repeated_rows"],
        options=lambda w: STUDY.source(w.source).options,
        stamp=lambda w: stamp(PLANS[w.source][0].inputs),
        fingerprint=lambda w: code_of("collect", *sources.modules_of(STUDY.source(w.source).kind)),
    script:
        "../../scripts/collect.py"


for source, batches in PLANS.items():
    for batch in filter(lambda batch: batch.name, batches):

        rule:
            name:
                f"collect_{source}_{batch.name}"
            input:
                batch.inputs,
            output:
                directory(f"<results>/outcomes/{source}/{batch.name}"),
            log:
                f"<logs>/collect/{source}.{batch.name}.log",
            benchmark:
                f"<benchmarks>/collect/{source}.{batch.name}.tsv"
            conda:
                "../../envs/environment.yaml"
            threads: 1
            resources:
                mem_mb=memory(1500),
            params:
                source=source,
                batch=batch.name,
                models=as_is(batch.models),
                repeated_rows=STUDY.joining["repeated_rows"],
                options=as_is(STUDY.source(source).options),
                stamp=lambda w, batch=batch: stamp(batch.inputs),
                fingerprint=code_of("collect", *sources.modules_of(STUDY.source(source).kind)),
            script:
                "../../scripts/collect.py"
