"""benchmirt: what language-model benchmarks really measure, from outcomes to verdicts.

outcomes -> response matrix -> fits -> dimensions -> claims -> report. Each result has one place in the `results` folder:

    <results>/fetched/{source}/, sources/{source}/    data sets of the hub; simulated tables (their truth: truth/{source}/)
    <results>/outcomes/{source}/shard{n}.parquet      one row per model and item, beside manifests, items and models
    <results>/matrix/{policy}/, roads/, data_card.json    responses, items, models; published beside raw ones; summary
    <results>/fits.csv, fits/{fit}/seed{seed}.nc      a row and a folder per fit, a file per seed
    <results>/dimensions/, prediction/, shortforms/, pairs/    what is measured, how well it predicts, what fewer items lose
    <results>/claims/{claim}.json, claims.csv         a record per claim, a row per claim
    <results>/calibration/, scores/, extended/, shortform/, adaptive/, compared/    for new models, other studies; if asked for
    <results>/report/index.html, figures/, profiles/  the page, its figures, tables of benchmarks; report/benchmark/: their pages
    <results>/logs/, benchmarks/                      what each job said; its seconds and memory

A configuration that names its `sources` is a whole study. Any other is laid over config.yaml, here or beside this file.
"""

from snakemake.utils import min_version

min_version("9.19")


include: "workflow/rules/common.smk"


pathvars:
    results=STUDY.results,
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


include: "workflow/rules/collect.smk"
include: "workflow/rules/matrix.smk"
include: "workflow/rules/fit.smk"
include: "workflow/rules/dimensions.smk"
include: "workflow/rules/prediction.smk"
include: "workflow/rules/shortforms.smk"
include: "workflow/rules/score.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/profiles.smk"
include: "workflow/rules/report.smk"


report: "workflow/report/workflow.rst"


rule all:
    default_target: True
    input:
        expand("<results>/{file}", file=["report/index.html", "calibration/calibration.json"]),
        CHECKS,


onsuccess:
    print(logs.closing(STUDY.results, sorted(workflow.dag_settings.targets)))


onerror:
    print(logs.failures(log))
