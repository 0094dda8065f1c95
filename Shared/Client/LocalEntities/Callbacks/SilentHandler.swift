/// The handler of an app that needs no callbacks.
struct SilentHandler: EntityHandler {}
