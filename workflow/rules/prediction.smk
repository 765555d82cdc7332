"""Prediction: how well answers that were held out can be foretold.

in    <results>/matrix/honest/, <results>/matrix/published/
out   <results>/prediction/: prediction.json (splits, methods and settings in words), scores.csv (every measure of every
      method and split with its interval), calibration.csv (predicted and observed shares), models.parquet (counts per fold,
      method, model and benchmark)
steps prediction  holds out single answers, lineages, questions, benchmarks and newer models in turn, and predicts them by
                  means, additive models and MIRT; repeats the published study's own comparison
"""


rule prediction:
    input:
        honest=matrix("honest"),
        published=matrix("published"),
    output:
        summary="<results>/prediction/prediction.json",
        scores=report(
            "<results>/prediction/scores.csv",
            caption="../report/scores.rst",
            category="Prediction",
        ),
        calibration="<results>/prediction/calibration.csv",
        by_model="<results>/prediction/models.parquet",
    log:
        "<logs>/prediction.log",
    benchmark:
        "<benchmarks>/prediction.tsv"
    priority: 70
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000, per_cell=400),
    params:
        asymptotes=STUDY.fits["asymptotes"],
        options={
            "dims": STUDY.fits["dims"],
            "max_dims": STUDY.fits["max_dims"],
            **STUDY.prediction,
        },
        fingerprint=code_of("prediction"),
    script:
        "../../scripts/prediction.py"
