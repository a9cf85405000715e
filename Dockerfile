# The image of deploy/core: docker build --tag reconciler:0.1.0 .
# tests/long/test_image.py runs the commands of both stages in a clean folder.

FROM python:3.11-slim AS build
WORKDIR /src
# hatchling, which builds the wheel, and every dependency with its hash.
COPY requirements.lock requirements-dev.lock ./
RUN python -m venv /build && /build/bin/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements-dev.lock
RUN python -m venv /app && /app/bin/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements.lock
COPY . .
# Karpenter's schema of a NodePool comes from its Go module. Without it, NodePools are not checked against the schema.
RUN /build/bin/python build_karpenter_schema.py
RUN /build/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
RUN /app/bin/python -m pip install --quiet --no-deps dist/reconciler-*.whl && /app/bin/python -m pip uninstall --quiet --yes pip

FROM python:3.11-slim
# git reads policies from repositories (--repo).
RUN apt-get update && apt-get install --yes --no-install-recommends git ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /app /app
ENV PATH=/app/bin:$PATH
# The user of deploy/core/controller.yaml; the root file system may be read-only.
USER 65532:65532
ENTRYPOINT ["/app/bin/reconciler"]
CMD ["--help"]
