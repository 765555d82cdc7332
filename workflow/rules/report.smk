"""Report: figures and the page, made from result files alone.

in    <results>/claims/, <results>/dimensions/, <results>/matrix/, <results>/fits/
out   <results>/figures/{figure}.{png,svg,pdf}, <results>/report/index.html
steps figure_*      one figure of the catalogue each
      figure_claim  the figure of one claim
      page          the one self-contained page
"""

for name in figures.CATALOGUE:

    rule:
        name:
            f"figure_{name}"
        input:
            [f"<results>/{path}" for path in figures.inputs(name, KINDS)],
        output:
            f"<results>/figures/{name}.png",
            report(
                f"<results>/figures/{name}.svg",
                caption=f"../report/{figures.caption(name)}",
                category=figures.category(name),
            ),
            f"<results>/figures/{name}.pdf",
        log:
            f"<logs>/figure/{name}.log",
        benchmark:
            f"<benchmarks>/figure/{name}.tsv"
        conda:
            "../../envs/environment.yaml"
        threads: 1
        resources:
            mem_mb=memory(1000),
        params:
            figure=name,
            study=[STUDY.name, STUDY.title, STUDY.simulated],
            fingerprint=code_of("figure"),
        script:
            "../../scripts/figure.py"


rule figure_claim:
    input:
        lambda w: [f"<results>/{path}" for path in figures.inputs(f"claim_{w.claim}", KINDS)],
    output:
        "<results>/figures/claim_{claim}.png",
        report(
            "<results>/figures/claim_{claim}.svg",
            caption="../report/claim.rst",
            category="Claims",
        ),
        "<results>/figures/claim_{claim}.pdf",
    log:
        "<logs>/figure/claim_{claim}.log",
    benchmark:
        "<benchmarks>/figure/claim_{claim}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1000),
    params:
        figure=lambda w: f"claim_{w.claim}",
        study=[STUDY.name, STUDY.title, STUDY.simulated],
        fingerprint=code_of("figure"),
    script:
        "../../scripts/figure.py"


rule page:
    input:
        [f"<results>/{path}" for path in page.inputs(list(FITS.values()), KINDS)],
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
        study=STUDY.raw,
        configfiles=[os.path.relpath(file) for file in workflow.config_settings.configfiles],
        fingerprint=code_of("page"),
    script:
        "../../scripts/page.py"
