from .provider import serve

serve()
