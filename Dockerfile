# docker build -t commsim . ; docker run --rm commsim run ring_all_reduce --topology star:n_hosts=8 -b 1M -e 1G
FROM python:3.12-slim
WORKDIR /opt/commsim
COPY pyproject.toml README.md LICENSE MANIFEST.in ./
COPY commsim commsim
COPY collectives collectives
COPY topologies topologies
COPY switch_model switch_model
# torch is left out: it is large, and only `commsim workload profile` and `validate torch` need it
RUN pip install --no-cache-dir '.[all]'
ENV NUMBA_CACHE_DIR=/opt/commsim/kernels
RUN commsim warmup
WORKDIR /work
ENTRYPOINT ["commsim"]
