"""Rows of recording and OAuth for tests. What a request must send comes from the use cases."""

from datetime import timedelta

from django.utils import timezone
from factory.declarations import LazyFunction, SelfAttribute, Sequence, SubFactory
from factory.django import DjangoModelFactory
from oauth2_provider.models import AccessToken, RefreshToken

from recording.models import PersonalToken, Recording
from recording.oauth.models import Application, Grant
from tests.factories import UserFactory


def _in_an_hour():
    return timezone.now() + timedelta(hours=1)


class RecordingFactory(DjangoModelFactory[Recording]):
    class Meta:
        model = Recording

    account = SubFactory(UserFactory)
    audio_id = Sequence(lambda n: f"aud_{n}")
    document = b"{}"
    size = 2


class PersonalTokenFactory(DjangoModelFactory[PersonalToken]):
    class Meta:
        model = PersonalToken

    user = SubFactory(UserFactory)
    display_prefix = "rec_pat_abcd"
    digest = Sequence(lambda n: f"{n:064x}")
    expires_at = LazyFunction(_in_an_hour)


class ApplicationFactory(DjangoModelFactory[Application]):
    class Meta:
        model = Application

    name = Sequence(lambda n: f"Application {n}")
    client_type = Application.CLIENT_PUBLIC
    authorization_grant_type = Application.GRANT_AUTHORIZATION_CODE
    redirect_uris = "http://localhost/cb"


class GrantFactory(DjangoModelFactory[Grant]):
    class Meta:
        model = Grant

    user = SubFactory(UserFactory)
    application = SubFactory(ApplicationFactory)
    code = Sequence(lambda n: f"code {n}")
    redirect_uri = "http://localhost/cb"
    expires = LazyFunction(_in_an_hour)


class AccessTokenFactory(DjangoModelFactory[AccessToken]):
    class Meta:
        model = AccessToken

    user = SubFactory(UserFactory)
    application = SubFactory(ApplicationFactory)
    token = Sequence(lambda n: f"rec_at_{n}")
    scope = "mcp:connect"
    expires = LazyFunction(_in_an_hour)


class RefreshTokenFactory(DjangoModelFactory[RefreshToken]):
    """A connection: the refresh token and the access token of the same pair."""

    class Meta:
        model = RefreshToken

    user = SubFactory(UserFactory)
    application = SubFactory(ApplicationFactory)
    token = Sequence(lambda n: f"rec_rt_{n}")
    access_token = SubFactory(
        AccessTokenFactory,
        user=SelfAttribute("..user"),
        application=SelfAttribute("..application"),
    )
