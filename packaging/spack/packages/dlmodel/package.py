# Spack recipe of dlmodel. In a clone of the repository:
#     spack repo add packaging/spack && spack dev-build dlmodel@0.2.0
# (dev-build takes the sources of the present folder; nothing is downloaded).
from spack.package import *


class Dlmodel(MakefilePackage):
    """Performance model of distributed deep-learning training: predicts iteration time, memory and
    bottleneck of a training job by framework and parallel strategy, and calibrates nodes and
    networks."""

    # The folder that this recipe is in; a site gives its own address.
    homepage = "file:///"

    license("Apache-2.0")

    version("0.2.0")

    variant("cuda", default=False, description="probes for NVIDIA GPUs (cuBLAS, cuDNN, NCCL)")
    variant("mpi", default=True, description="probes of MPI messages")
    variant("cpu", default=True, description="probes of CPU arithmetic (OpenBLAS, oneDNN 2)")
    variant("onnx", default=True, description="import of ONNX models")
    variant("serve", default=False, description="predictions over HTTP")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cjson")
    depends_on("gsl")
    depends_on("mpi", when="+mpi")
    depends_on("openblas", when="+cpu")
    depends_on("onednn@2", when="+cpu")
    depends_on("protobuf-c", when="+onnx")
    depends_on("libmicrohttpd", when="+serve")
    depends_on("cuda@11.8:", when="+cuda")
    depends_on("cudnn@8:", when="+cuda")
    depends_on("nccl", when="+cuda")

    def options(self):
        spec = self.spec
        on = lambda variant: "1" if spec.satisfies("+" + variant) else "0"
        flags = [
            "PREFIX=" + self.prefix,
            "MPI=" + on("mpi"),
            "OPENBLAS=" + on("cpu"),
            "ONEDNN=" + on("cpu"),
            "PROTOBUF_C=" + on("onnx"),
            "MICROHTTPD=" + on("serve"),
            "CUDA=" + on("cuda"),
            "CUDNN=" + on("cuda"),
            "NCCL=" + on("cuda"),
        ]
        if spec.satisfies("+cuda"):
            # One folder of CUDA is expected: Spack's compiler knows the paths to cuDNN and NCCL.
            flags.append("CUDA_HOME=" + spec["cuda"].prefix)
        return flags

    def build(self, spec, prefix):
        make(*self.options())

    def install(self, spec, prefix):
        make("install", *self.options())
