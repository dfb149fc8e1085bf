"""Users for tests."""

from django.contrib.auth.models import User
from factory.declarations import Sequence, Trait
from factory.django import DjangoModelFactory, Password


class UserFactory(DjangoModelFactory[User]):
    """Without a password nobody can log in, except by `force_login`."""

    class Meta:
        model = User

    class Params:
        staff = Trait(is_staff=True)
        superuser = Trait(is_staff=True, is_superuser=True)

    username = Sequence(lambda n: f"user{n}")
    password = Password(None)
