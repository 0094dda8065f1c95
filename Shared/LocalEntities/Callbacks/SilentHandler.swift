/// For an app that wants no callbacks.
struct SilentHandler: EntityHandler {}
