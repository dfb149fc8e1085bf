"""Django in one file: `python django_receiver.py runserver`."""

import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from inbox import store
from signpost_receiver import SignatureError, verify

if not settings.configured:
    settings.configure(
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["127.0.0.1"],
        # Django's default is 2.5 MB, and deliveries can exceed 1 MiB.
        DATA_UPLOAD_MAX_MEMORY_SIZE=4 * 1024 * 1024,
    )


@csrf_exempt  # the signature proves who sends
@require_POST
def receive(request):
    body = request.body  # the raw bytes; read them before request.POST
    try:
        event = verify(os.environ["SIGNPOST_SECRET"], request.headers, body)
    except SignatureError:
        return HttpResponse(status=401)
    store(os.environ["INBOX"], event, body)
    return HttpResponse(status=204)


urlpatterns = [path("hook", receive)]
application = get_wsgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
