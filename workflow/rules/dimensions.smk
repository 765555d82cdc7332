"""Dimensions: what the fits agree on, how far it can be trusted, and what it follows.

in    <results>/fits/, <results>/matrix/
out   <results>/dimensions/, <results>/pairs/
steps consensus        all seeds of a fit in one frame, with the rotation that is shown
      reproducibility  agreement over seeds on the same data (tests the optimiser)
      checks           agreement of other ways to fit with the headline
      stability        agreement over disjoint halves of lineages and of items, against null data (tests the dimensions)
      number           how many dimensions: held-out models, and eigenvalues against a null
      leave_one_out    abilities with one benchmark left out at a time
      bootstrap        refits on resampled lineages
      labels           which declared category each ability follows, and whether that is enough for a name
      mix              refits to other mixes: one category alone, with one benchmark more; which mix creates which dimension
      pairs            discriminations from calibrations without a pair of models that a claim compares
      item_model_statistics  one row per item and one per model: the identified numbers with intervals
"""


rule consensus:
    input:
        fits=lambda w: seeds(w.fit),
        item_table=lambda w: f"<results>/matrix/{FITS[w.fit]['policy']}/items.parquet",
    output:
        "<results>/dimensions/{fit}/consensus.nc",
    log:
        "<logs>/consensus/{fit}.log",
    benchmark:
        "<benchmarks>/consensus/{fit}.tsv"
    priority: 120
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000, per_cell=50),
    params:
        anchors=lambda w: STUDY.dimensions["anchors"],
        fingerprint=code_of("consensus"),
    script:
        "../../scripts/consensus.py"


rule reproducibility:
    input:
        published=seeds("published"),
        corrected=seeds("corrected"),
    output:
        "<results>/dimensions/reproducibility.csv",
    log:
        "<logs>/reproducibility.log",
    benchmark:
        "<benchmarks>/reproducibility.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000, per_cell=50),
    params:
        fingerprint=code_of("reproducibility"),
    script:
        "../../scripts/reproducibility.py"


rule checks:
    input:
        fits=[record for fit in OTHER_FITS for record in seeds(fit)],
        headline="<results>/dimensions/corrected/consensus.nc",
    output:
        "<results>/dimensions/checks.csv",
    log:
        "<logs>/checks.log",
    benchmark:
        "<benchmarks>/checks.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000, per_cell=50),
    params:
        fingerprint=code_of("checks"),
    script:
        "../../scripts/checks.py"


rule stability:
    input:
        matrix=matrix("honest"),
        consensus="<results>/dimensions/corrected/consensus.nc",
    output:
        summary="<results>/dimensions/stability.json",
        splits="<results>/dimensions/stability_splits.csv",
        null="<results>/dimensions/stability_null.csv",
    log:
        "<logs>/stability.log",
    benchmark:
        "<benchmarks>/stability.tsv"
    priority: 120
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000, per_cell=400),
    params:
        asymptotes=STUDY.fits["asymptotes"],
        options={
            "splits": STUDY.dimensions["splits"],
            "replicates": STUDY.dimensions["null_replicates"],
            "null_splits": STUDY.dimensions["null_splits"],
        },
        fingerprint=code_of("stability"),
    script:
        "../../scripts/stability.py"


rule number:
    input:
        matrix=matrix("honest"),
    output:
        summary="<results>/dimensions/number.json",
        folds="<results>/dimensions/number_folds.csv",
        eigenvalues="<results>/dimensions/number_eigenvalues.csv",
    log:
        "<logs>/number.log",
    benchmark:
        "<benchmarks>/number.tsv"
    priority: 60
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000, per_cell=400),
    params:
        asymptotes=STUDY.fits["asymptotes"],
        options={
            "max_dims": STUDY.fits["max_dims"],
            "folds": STUDY.dimensions["folds"],
            "replicates": STUDY.dimensions["null_replicates"],
        },
        fingerprint=code_of("number"),
    script:
        "../../scripts/number.py"


rule leave_one_out:
    input:
        matrix=matrix("honest"),
        consensus="<results>/dimensions/corrected/consensus.nc",
    output:
        "<results>/dimensions/leave_one_out.nc",
    log:
        "<logs>/leave_one_out.log",
    benchmark:
        "<benchmarks>/leave_one_out.tsv"
    priority: 30
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000, per_cell=400),
    params:
        asymptotes=STUDY.fits["asymptotes"],
        options=ENGINES["em"],
        fingerprint=code_of("leave_one_out"),
    script:
        "../../scripts/leave_one_out.py"


rule bootstrap:
    input:
        matrix=matrix("honest"),
        consensus="<results>/dimensions/corrected/consensus.nc",
    output:
        "<results>/dimensions/bootstrap.nc",
    log:
        "<logs>/bootstrap.log",
    benchmark:
        "<benchmarks>/bootstrap.tsv"
    priority: 40
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000, per_cell=800),
    params:
        asymptotes=STUDY.fits["asymptotes"],
        options={"replicates": STUDY.dimensions["bootstrap"], **ENGINES["em"]},
        fingerprint=code_of("bootstrap"),
    script:
        "../../scripts/bootstrap.py"


rule labels:
    input:
        matrix=matrix("honest"),
        consensus="<results>/dimensions/corrected/consensus.nc",
        leave_one_out="<results>/dimensions/leave_one_out.nc",
    output:
        "<results>/dimensions/labels.json",
    log:
        "<logs>/labels.log",
    benchmark:
        "<benchmarks>/labels.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000, per_cell=50),
    params:
        asymptotes=STUDY.fits["asymptotes"],
        fingerprint=code_of("labels"),
    script:
        "../../scripts/labels.py"


rule item_model_statistics:
    input:
        matrix=matrix("honest"),
        consensus="<results>/dimensions/corrected/consensus.nc",
        bootstrap="<results>/dimensions/bootstrap.nc",
        left_out="<results>/dimensions/leave_one_out.nc",
        published=seeds("published"),
    output:
        item_statistics=report(
            "<results>/dimensions/item_statistics.csv",
            caption="../report/item_statistics.rst",
            category="Items",
        ),
        model_statistics=report(
            "<results>/dimensions/model_statistics.csv",
            caption="../report/model_statistics.rst",
            category="Models",
        ),
    log:
        "<logs>/item_model_statistics.log",
    benchmark:
        "<benchmarks>/item_model_statistics.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1500, per_cell=100),
    params:
        fingerprint=code_of("item_model_statistics"),
    script:
        "../../scripts/item_model_statistics.py"


rule mix:
    input:
        matrix=matrix("honest"),
        consensus="<results>/dimensions/corrected/consensus.nc",
        leave_one_out="<results>/dimensions/leave_one_out.nc",
        bootstrap="<results>/dimensions/bootstrap.nc",
    output:
        table="<results>/dimensions/mix.csv",
        replicates="<results>/dimensions/mix_replicates.csv",
        summary="<results>/dimensions/mix.json",
    log:
        "<logs>/mix.log",
    benchmark:
        "<benchmarks>/mix.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000, per_cell=400),
    params:
        asymptotes=STUDY.fits["asymptotes"],
        options={
            "null_replicates": STUDY.dimensions["mix_null_replicates"],
            "splits": STUDY.dimensions["splits"],
        },
        fingerprint=code_of("mix"),
    script:
        "../../scripts/mix.py"


rule pairs:
    input:
        matrix=matrix("honest"),
        consensus="<results>/dimensions/corrected/consensus.nc",
    output:
        "<results>/pairs/refits.nc",
    log:
        "<logs>/pairs.log",
    benchmark:
        "<benchmarks>/pairs.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000, per_cell=400),
    params:
        asymptotes=STUDY.fits["asymptotes"],
        pairs=claims.pairs_of(CLAIMS.values()),
        options=ENGINES["em"],
        fingerprint=code_of("pairs"),
    script:
        "../../scripts/pairs.py"
