"""Matrix: the outcomes of all sources in one response matrix, once per policy.

in    <results>/outcomes/{source}/ of every source; the tables of published_statistics: and of published_responses: where
      the study has any
out   <results>/matrix/{policy}/: responses.parquet (a row per item, a column per model), items.parquet, models.parquet,
      coverage.csv (who was run on what, and why not), conflicts.csv (where one name did not mean one question, and what
      was done), missingness.csv (whether what is missing goes with ability), summary.json
steps matrix  merges the sources, applies the policy and the filters; what is dropped stays in the tables with a reason
      published_statistics  lists what differs from the tables that the study was published with, one by one, in
                            <results>/published_statistics/; no verdict rests on it
      roads   lists what differs from the responses that the study was published with, cell by cell, in <results>/roads/;
              nothing is settled there, and no matrix changes
"""


rule matrix:
    input:
        shards=outcomes("shard0.parquet"),
        others=outcomes("shard0.manifests.json", "items.parquet", "models.parquet"),
    output:
        responses="<results>/matrix/{policy}/responses.parquet",
        item_table="<results>/matrix/{policy}/items.parquet",
        model_table="<results>/matrix/{policy}/models.parquet",
        coverage="<results>/matrix/{policy}/coverage.csv",
        conflicts="<results>/matrix/{policy}/conflicts.csv",
        missingness="<results>/matrix/{policy}/missingness.csv",
        summary="<results>/matrix/{policy}/summary.json",
    log:
        "<logs>/matrix/{policy}.log",
    benchmark:
        "<benchmarks>/matrix/{policy}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1500),
    params:
        models={name: value for name, value in STUDY.models.items() if name != "contrasts"},
        joining=STUDY.joining,
        filter=lambda w: [STUDY.filter[w.policy], STUDY.filter["min_observed"]],
        asymptotes=lambda w: w.policy == "honest" and STUDY.fits["asymptotes"],
        fingerprint=code_of("matrix"),
    script:
        "../../scripts/matrix.py"


rule published_statistics:
    input:
        matrix=matrix("published"),
        counts=os.path.relpath(STUDY.resource("workflow/resources/benchmarks.csv")),
        tables=list(STUDY.statistics_places("<results>").values()),
    output:
        "<results>/published_statistics/differences.csv",
        "<results>/published_statistics/summary.json",
    log:
        "<logs>/published_statistics.log",
    benchmark:
        "<benchmarks>/published_statistics.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
    params:
        fingerprint=code_of("published_statistics"),
    script:
        "../../scripts/published_statistics.py"


rule roads:
    input:
        shards=outcomes("shard0.parquet"),
        others=outcomes("shard0.manifests.json", "items.parquet", "models.parquet"),
        published=list(ROAD.files("<results>").values()) if ROAD else [],
        counts=os.path.relpath(STUDY.resource("workflow/resources/benchmarks.csv")),
        roster=os.path.relpath(STUDY.resource("workflow/resources/models.csv")),
    output:
        expand("<results>/roads/{file}", file=studies.ROAD_FILES),
    log:
        "<logs>/roads.log",
    benchmark:
        "<benchmarks>/roads.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
    params:
        published=as_is(STUDY.published_responses),
        models=STUDY.models,
        joining=STUDY.joining,
        stamp=lambda w: stamp(ROAD.files("<results>").values()) if ROAD else "",
        fingerprint=code_of("roads"),
    script:
        "../../scripts/roads.py"
