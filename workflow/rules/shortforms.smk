"""Short forms: whether fewer items do.

in    <results>/matrix/, <results>/dimensions/
out   <results>/shortforms/published_filter.csv: what the published filter keeps; curve.csv: forms of 1 % to 100 % of the
      items beside random ones; correlations.csv: a row per form, benchmark and ability; weakening.csv: pass rates without
      the sharpest items; summary.json
steps shortforms  calibrates without each fold of lineages, chooses forms from that, and judges them on the fold
"""


rule shortforms:
    input:
        matrix=matrix("honest"),
        consensus="<results>/dimensions/corrected/consensus.nc",
        leave_one_out="<results>/dimensions/leave_one_out.nc",
        labels="<results>/dimensions/labels.json",
        published_matrix=matrix("published"),
        published_consensus="<results>/dimensions/published/consensus.nc",
    output:
        summary="<results>/shortforms/summary.json",
        filter_report="<results>/shortforms/published_filter.csv",
        curve="<results>/shortforms/curve.csv",
        correlations="<results>/shortforms/correlations.csv",
        weakening="<results>/shortforms/weakening.csv",
    log:
        "<logs>/shortforms.log",
    benchmark:
        "<benchmarks>/shortforms.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000, per_cell=400),
    params:
        asymptotes=STUDY.fits["asymptotes"],
        options={
            **STUDY.shortforms,
            **ENGINES["em"],
            "unconverged": STUDY.claims.get("unconverged", False),
        },
        fingerprint=code_of("shortforms"),
    script:
        "../../scripts/shortforms.py"
