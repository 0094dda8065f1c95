/// The result of a fetch.
enum Loaded: Sendable {
    case resource(Resource)
    case collection(ResourceCollection)
    case nothing

    var resource: Resource? {
        if case .resource(let resource) = self { return resource }
        return nil
    }

    var collection: ResourceCollection? {
        if case .collection(let collection) = self { return collection }
        return nil
    }
}
