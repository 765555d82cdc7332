"""Report: figures and the page, made from result files alone.

in    <results>/claims/, <results>/dimensions/, <results>/matrix/, <results>/fits/
out   <results>/figures/{figure}.{png,svg,pdf}, <results>/data_card.json, <results>/report/index.html
steps data_card     what the study rests on: sources, models, benchmarks, what is missing, conflicts
      figure_*      figures of the catalogue by what they wait for, those of claims by eights: starting up takes longer than drawing
      page          the one self-contained page
"""


rule data_card:
    input:
        honest=[f"<results>/matrix/honest/{file}" for file in page.TABLES],
        published=[f"<results>/matrix/published/{file}" for file in page.TABLES],
        shards=outcomes("shard0.parquet"),
        manifests=outcomes("shard0.manifests.json"),
        roads=["<results>/roads/summary.json"] if ROAD else [],
    output:
        "<results>/data_card.json",
    log:
        "<logs>/data_card.log",
    benchmark:
        "<benchmarks>/data_card.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
    params:
        licences=as_is([source.options.get("licence") for source in STUDY.sources]),
        contrasts=as_is(STUDY.models["contrasts"]),
        fingerprint=code_of("data_card"),
    script:
        "../../scripts/data_card.py"


for sheet, drawn in figures.sheets(KINDS).items():

    rule:
        name:
            f"figure_{sheet}"
        input:
            [f"<results>/{path}" for path in figures.inputs(drawn, KINDS)],
        output:
            [f"<results>/figures/{name}.{kind}" for name in drawn for kind in ("png", "pdf")],
            [
                report(
                    f"<results>/figures/{name}.svg",
                    caption=f"../report/{figures.caption(name)}",
                    category=figures.category(name),
                )
                for name in drawn
            ],
        log:
            f"<logs>/figure/{sheet}.log",
        benchmark:
            f"<benchmarks>/figure/{sheet}.tsv"
        conda:
            "../../envs/environment.yaml"
        threads: 1
        resources:
            mem_mb=memory(1000),
        params:
            figures=drawn,
            study=as_is([STUDY.name, STUDY.title, STUDY.simulated]),
            fingerprint=code_of("figure"),
        script:
            "../../scripts/figure.py"


rule page:
    input:
        [f"<results>/{path}" for path in page.inputs(list(FITS.values()), KINDS)],
        "<results>/report/benchmark",
    output:
        report(
            "<results>/report/index.html",
            caption="../report/page.rst",
            category="Verdicts",
        ),
    log:
        "<logs>/page.log",
    benchmark:
        "<benchmarks>/page.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1500),
    params:
        study={key: value for key, value in STUDY.raw.items() if key not in studies.AFTERWARDS},
        overrides=as_is(list(workflow.config_settings.config_args or [])),
        configfiles=as_is([os.path.relpath(file) for file in workflow.config_settings.configfiles]),
        fingerprint=code_of("page"),
    script:
        "../../scripts/page.py"
