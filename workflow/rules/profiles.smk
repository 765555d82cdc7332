"""Profiles: what each benchmark measures, and which of its items are worth keeping.

in    <results>/matrix/honest/, <results>/dimensions/, <results>/calibration/
out   <results>/profiles/benchmarks.csv, groups.csv, subsets.csv, items.csv: a row per benchmark, per group of its items that
      was found, per subset that is declared, per item;
      <results>/report/benchmark/{benchmark}.html: a page per benchmark
steps profiles         direction, own share, groups of items that point different ways, items that add little or run
                       backwards, ceiling, floor, missing outcomes and the best short form of every benchmark
      benchmark_pages  the same as pages, which the report links to; a folder, since only the data name the benchmarks
"""


rule profiles:
    input:
        matrix=matrix("honest"),
        coverage="<results>/matrix/honest/coverage.csv",
        consensus="<results>/dimensions/corrected/consensus.nc",
        bootstrap="<results>/dimensions/bootstrap.nc",
        labels="<results>/dimensions/labels.json",
        leave_one_out="<results>/dimensions/leave_one_out.nc",
        calibration=calibration(),
    output:
        benchmarks=report(
            "<results>/profiles/benchmarks.csv",
            caption="../report/profiles.rst",
            category="Items",
        ),
        groups="<results>/profiles/groups.csv",
        subsets="<results>/profiles/subsets.csv",
        item_table="<results>/profiles/items.csv",
    log:
        "<logs>/profiles.log",
    benchmark:
        "<benchmarks>/profiles.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1500, per_cell=150),
    params:
        unconverged=STUDY.claims.get("unconverged", False),
        fingerprint=code_of("profiles"),
    script:
        "../../scripts/profiles.py"


rule benchmark_pages:
    input:
        [f"<results>/{path}" for path in page.profile_inputs()],
    output:
        directory("<results>/report/benchmark"),
    log:
        "<logs>/benchmark_pages.log",
    benchmark:
        "<benchmarks>/benchmark_pages.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
    params:
        study=as_is([STUDY.name, STUDY.title, STUDY.simulated, STUDY.raw.get("report")]),
        overrides=as_is(list(workflow.config_settings.config_args or [])),
        configfiles=as_is([os.path.relpath(file) for file in workflow.config_settings.configfiles]),
        fingerprint=code_of("benchmark_pages"),
    script:
        "../../scripts/benchmark_pages.py"
