"""The input types of the contract."""

from __future__ import annotations

import graphene

from catalog.text_checks import DESCRIPTION_LENGTH, NAME_LENGTH

ID = graphene.ID(required=True, description="The id of the record.")
TEXT = f"Not blank, at most {NAME_LENGTH} characters."


class BookInput(graphene.InputObjectType):
    """All fields of a book; an update replaces them all."""

    name = graphene.String(required=True, description=TEXT)
    page_count = graphene.Int(required=True, description="Zero or more.")
    author_id = graphene.Int(required=True, description="The id of its author.")
    category_id = graphene.Int(description="Left out or null: no category.")


class BookUpsertInput(BookInput):
    """A book and its key in another system; a book of this key is replaced."""

    external_id = graphene.String(required=True, description=TEXT)


class AuthorInput(graphene.InputObjectType):
    """Both names of an author."""

    first_name = graphene.String(required=True, description=TEXT)
    last_name = graphene.String(required=True, description=TEXT)


class CategoryInput(graphene.InputObjectType):
    """A category."""

    name = graphene.String(required=True, description=TEXT)
    description = graphene.String(
        description=f"At most {DESCRIPTION_LENGTH:,} characters."
    )
