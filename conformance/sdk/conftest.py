"""What every test may ask for."""

import openai
import pytest
from asking import MODEL, Server, options


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def model():
    return MODEL


@pytest.fixture
def client():
    with openai.OpenAI(**options()) as made:
        yield made
