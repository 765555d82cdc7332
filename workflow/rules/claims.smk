"""Claims: each statement of the claims file is judged from the tables.

in    <results>/matrix/, <results>/dimensions/, as the kind of the claim needs
out   <results>/claims/{claim}.json (the record), {claim}.csv (its parts); <results>/claims/claims.csv, a row per claim, and
      claims.tex and parts.tex, LaTeX tables
steps claim         estimate, interval and verdict of one claim, as published and corrected
      claims_table  all records in the order of the claims file
      compare       verdicts and estimates of a simulated study beside its truth (only if asked for)
"""


rule claim:
    input:
        results=lambda w: [
            f"<results>/{path}"
            for path in claims.inputs_of(CLAIMS[w.claim], sources_of("table", "simulated"))
        ],
        delivered=lambda w: outcomes() if KINDS[w.claim] == "count" else [],
        tables=lambda w: map(os.path.relpath, claims.tables_of(CLAIMS[w.claim], STUDY)),
        checked=lambda w: published_models(w.claim),
    output:
        record="<results>/claims/{claim}.json",
        parts="<results>/claims/{claim}.csv",
    log:
        "<logs>/claim/{claim}.log",
    benchmark:
        "<benchmarks>/claim/{claim}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1500, per_cell=100),
    params:
        entry=lambda w: ENTRIES[w.claim],
        unconverged=STUDY.claims.get("unconverged", False),
        study=[STUDY.simulated, STUDY.published_size],
        fingerprint=lambda w: code_of("claim", f"claims.{KINDS[w.claim]}"),
    script:
        "../../scripts/claim.py"


rule claims_table:
    input:
        expand("<results>/claims/{claim}.json", claim=CLAIMS),
    output:
        table=report(
            "<results>/claims/claims.csv",
            caption="../report/claims_table.rst",
            category="Verdicts",
        ),
        latex=multiext("<results>/claims/", "claims.tex", "parts.tex"),
    log:
        "<logs>/claims_table.log",
    benchmark:
        "<benchmarks>/claims_table.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(500),
    params:
        fingerprint=code_of("claims_table"),
    script:
        "../../scripts/claims_table.py"


rule compare:
    input:
        claims="<results>/claims/claims.csv",
        statistics=expand("<results>/dimensions/{unit}_statistics.csv", unit=["item", "model"]),
        labels="<results>/dimensions/labels.json",
        expected=os.path.relpath(ROOT / "workflow" / "resources" / "expected_verdicts.csv"),
        truth=multiext(
            "<results>/truth/{source}/simulated_truth",
            ".json",
            "_models.csv",
            "_items.csv",
            "_correlations.csv",
        ),
    output:
        multiext(
            "<results>/truth/{source}/comparison/simulated_",
            "verdicts.csv",
            "abilities.csv",
            "correlations.csv",
            "directions.csv",
        ),
    log:
        "<logs>/compare/{source}.log",
    benchmark:
        "<benchmarks>/compare/{source}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
    params:
        fingerprint=code_of("compare"),
    script:
        "../../scripts/compare.py"
