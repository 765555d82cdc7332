"""Score: what a finished study is good for on the second day.

in    <results>/matrix/honest/, <results>/dimensions/; outcomes of new models, a calibration from elsewhere
out   <results>/calibration/, <results>/scores/, <results>/extended/, <results>/shortform/, <results>/adaptive/,
      <results>/compared/
steps calibration  freezes items, abilities and population of the corrected fit in a folder that can be copied or published
      collect_new  reads a source of new models, of any kind
      score        places new models on the abilities, and predicts the benchmarks that they were not run on (if asked for)
      extend       adds the items of a new benchmark to the calibration, through models that both know (if asked for)
      shortform    chooses the questions that tell most about the abilities (if asked for)
      adaptive     tests the study's models adaptively, each held out of the calibration (if asked for)
      compare_studies  links another study's calibration: are the abilities the same, which items drifted, which verdicts
                   changed (if asked for)

What is asked for stays where it was until a new answer takes its place (`update`): a wish that fails costs nothing.
"""

NEWCOMERS = studies.newcomers(STUDY)
NEW_FILES = {
    source.name: [
        path for job in or_stop(sources.plan, source, NEWCOMERS, results="<results>") for path in job.inputs
    ]
    for source in NEWCOMERS.sources
}


rule calibration:
    input:
        matrix=matrix("honest"),
        summary="<results>/matrix/honest/summary.json",
        consensus="<results>/dimensions/corrected/consensus.nc",
        labels="<results>/dimensions/labels.json",
        leave_one_out="<results>/dimensions/leave_one_out.nc",
        model_statistics="<results>/dimensions/model_statistics.csv",
    output:
        calibration(),
    log:
        "<logs>/calibration.log",
    benchmark:
        "<benchmarks>/calibration.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1500, per_cell=100),
    params:
        study=as_is([STUDY.name, STUDY.title, STUDY.filter, STUDY.fits["asymptotes"]]),
        fingerprint=code_of("calibration"),
    script:
        "../../scripts/calibration.py"


rule collect_new:
    input:
        lambda w: NEW_FILES[w.newcomers],
    output:
        directory("<results>/scores/outcomes/{newcomers}"),
    log:
        "<logs>/collect_new/{newcomers}.log",
    benchmark:
        "<benchmarks>/collect_new/{newcomers}.tsv"
    wildcard_constraints:
        newcomers=one_of(NEW_FILES),
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1500),
    params:
        options=lambda w: NEWCOMERS.source(w.newcomers).options,
        stamp=lambda w: stamp(NEW_FILES[w.newcomers]),
        repeated_rows=STUDY.joining["repeated_rows"],
        fingerprint=lambda w: code_of("collect_new", *sources.modules_of(NEWCOMERS.source(w.newcomers).kind)),
    script:
        "../../scripts/collect_new.py"


rule score:
    input:
        calibration=calibration(STUDY.score["calibration"]),
        outcomes=lambda w: or_stop(studies.need_newcomers, STUDY)
        or [f"<results>/scores/outcomes/{name}" for name in NEW_FILES],
    output:
        scores=update("<results>/scores/scores.csv"),
        predictions=update("<results>/scores/predictions.csv"),
        unmatched=update("<results>/scores/unmatched.csv"),
        summary=update("<results>/scores/scores.json"),
        figure=[update(f"<results>/scores/abilities.{ending}") for ending in ("png", "svg", "pdf")],
    log:
        "<logs>/score.log",
    benchmark:
        "<benchmarks>/score.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(3000),
    params:
        fingerprint=code_of("score"),
    script:
        "../../scripts/score.py"


rule extend:
    input:
        calibration=calibration(STUDY.score["calibration"]),
        outcomes=lambda w: or_stop(studies.need_newcomers, STUDY)
        or [f"<results>/scores/outcomes/{name}" for name in NEW_FILES],
    output:
        [update(path) for path in calibration("<results>/extended")],
    log:
        "<logs>/extend.log",
    benchmark:
        "<benchmarks>/extend.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(3000),
    params:
        fingerprint=code_of("extend"),
    script:
        "../../scripts/extend.py"


rule shortform:
    input:
        calibration(STUDY.shortform["calibration"]),
    output:
        list=update("<results>/shortform/shortform.csv"),
        summary=update("<results>/shortform/shortform.json"),
    log:
        "<logs>/shortform.log",
    benchmark:
        "<benchmarks>/shortform.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(1500),
    params:
        options={key: value for key, value in STUDY.shortform.items() if key != "calibration"},
        fingerprint=code_of("shortform"),
    script:
        "../../scripts/shortform.py"


rule adaptive:
    input:
        matrix=matrix("honest"),
        consensus="<results>/dimensions/corrected/consensus.nc",
        labels="<results>/dimensions/labels.json",
    output:
        summary=update("<results>/adaptive/adaptive.json"),
        curve=update("<results>/adaptive/curve.csv"),
        exposure=update("<results>/adaptive/exposure.csv"),
        figure=[update(f"<results>/adaptive/curve.{ending}") for ending in ("png", "svg", "pdf")],
    log:
        "<logs>/adaptive.log",
    benchmark:
        "<benchmarks>/adaptive.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000, per_cell=400),
    params:
        asymptotes=STUDY.fits["asymptotes"],
        options={**STUDY.adaptive, **ENGINES["em"]},
        study=as_is([STUDY.title, STUDY.simulated]),
        fingerprint=code_of("adaptive"),
    script:
        "../../scripts/adaptive.py"


rule compare_studies:
    input:
        here=calibration(),
        claims="<results>/claims/claims.csv",
        there=lambda w: or_stop(studies.need_other, STUDY),
    output:
        [
            update(f"<results>/compared/{name}")
            for name in (
                *("abilities.csv", "items.csv", "benchmarks.csv", "models.csv", "verdicts.csv"),
                *("compared.json", "compared.png", "compared.svg", "compared.pdf"),
            )
        ],
    log:
        "<logs>/compare_studies.log",
    benchmark:
        "<benchmarks>/compare_studies.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory(2000),
    params:
        fingerprint=code_of("compare_studies"),
    script:
        "../../scripts/compare_studies.py"
