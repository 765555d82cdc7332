"""Fit: one job per row of the fits table and seed.

in    <results>/matrix/{policy}/ of the row's policy
out   <results>/fits.csv, made from the configuration; <results>/fits/{fit}/seed{seed}.nc with posterior, diagnostics,
      priors and seeds, and seed{seed}.run.json with the times and memory that no two runs share
steps fits_table  writes the table for readers; no fit depends on it, so that a new seed or row runs nothing else
      fit         one engine (svi, em) on one matrix with one seed
      fit_first   the first seed of each, before the others: it compiles the program that they find in the cache
      fit_nuts    the same by NUTS: a core per chain where there are enough; after the others, on which most jobs wait, and
                  before the rest since it takes long
"""


rule fits_table:
    output:
        "<results>/fits.csv",
    log:
        "<logs>/fits_table.log",
    benchmark:
        "<benchmarks>/fits_table.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(500),
    params:
        rows=list(FITS.values()),
        fingerprint=code_of("fits_table"),
    script:
        "../../scripts/fits_table.py"


rule fit:
    input:
        lambda w: matrix(FITS[w.fit]["policy"]),
    output:
        fit="<results>/fits/{fit}/seed{seed}.nc",
        run="<results>/fits/{fit}/seed{seed}.run.json",
    log:
        "<logs>/fit/{fit}/seed{seed}.log",
    benchmark:
        "<benchmarks>/fit/{fit}/seed{seed}.tsv"
    wildcard_constraints:
        fit=one_of(fits_of("svi", "em")),
    priority: 110
    conda:
        "../../envs/environment.yaml"
    threads: 1 if STUDY.fits["gpus"] else STUDY.fits["devices"]
    resources:
        mem_mb=memory(1500, per_cell=200),
        gpu=STUDY.fits["gpus"],
    params:
        fit=lambda w: {key: FITS[w.fit][key] for key in ("engine", "dims", "asymptotes", "testlets")},
        devices=STUDY.fits["devices"],
        gpus=STUDY.fits["gpus"],
        options=lambda w: ENGINES[FITS[w.fit]["engine"]],
        priors=STUDY.fits["priors"],
        fingerprint=lambda w: code_of("fit", f"inference.{FITS[w.fit]['engine']}"),
    script:
        "../../scripts/fit.py"


use rule fit as fit_first with:
    wildcard_constraints:
        fit=one_of(fits_of("svi", "em")),
        seed="0",
    priority: 120


ruleorder: fit_first > fit


use rule fit as fit_nuts with:
    wildcard_constraints:
        fit=one_of(fits_of("nuts")),
    priority: 100
    threads: chain_threads
    resources:
        mem_mb=memory(2000, per_cell=1000),
        gpu=STUDY.fits["gpus"],
