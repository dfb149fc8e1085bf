# The image of every part: `web`, `qcluster`, `migrate` are commands of the same manage.py.
# An exact tag. To pin it by content: --build-arg BASE=python:3.13.9-slim-bookworm@sha256:…
ARG BASE=python:3.13.9-slim-bookworm
FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
COPY requirements/production.lock /tmp/
RUN /opt/venv/bin/pip install --require-hashes -r /tmp/production.lock

FROM ${BASE}
RUN useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin signpost
WORKDIR /app
ENV ENVIRONMENT=production \
    PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=build /opt/venv /opt/venv
COPY . .
# A process that may not write bytecode would compile the project at each start. Settings need their variables
# even here; none of these values is kept or used to serve.
RUN mkdir var && chown signpost var && python -m compileall -q . && \
    SECRET_KEY=none ALLOWED_HOSTS=none BASE_URL=https://none DATABASE_URL=sqlite:////tmp/none \
    REDIS_URL="" OAUTH_ALLOWED_REDIRECTS="" GATEWAY_CONFIG=gateway/sample.yaml \
    WEBHOOK_SECRET_KEYS="$(python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())')" \
    python manage.py collectstatic --noinput --skip-checks --verbosity 0
# A number: Kubernetes cannot tell by a name that this is not root.
USER 10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["python", "-c", \
    "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["python", "manage.py", "web", "--host", "0.0.0.0", "--port", "8000"]
